package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"

	kafkago "github.com/segmentio/kafka-go"
)

const (
	kafkaName     = "kafka"
	kafkaVariable = "TIDEMARK_TEST_KAFKA"
	kafkaVersion  = "4.4.0" // as in kafka/pom.xml
)

var kafka = service{
	name:     kafkaName,
	variable: kafkaVariable,
	ports:    []string{"broker", "controller"},
	fetch:    fetchKafka,
	command:  kafkaCommand,
	ask:      askKafka,
}

func fetchKafka(ctx context.Context, f *fetcher) (string, error) {
	return f.get(kafkaName, kafkaVersion, "43 MB", func(dir string) error {
		mvn, err := tool("mvn", "Kafka comes as Maven artifacts: install Maven 3.8 or later"+fmt.Sprintf(instead, kafkaVariable))
		if err != nil {
			return err
		}
		for _, name := range []string{"kafka/pom.xml", "kafka/log4j2.properties"} {
			if err := copyEmbedded(name, dir); err != nil {
				return err
			}
		}
		return output(ctx, dir, mvn, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
	})
}

// kafkaCommand formats the folder at its first start, and is the broker then.
func kafkaCommand(ctx context.Context, software, dir string, ports map[string]int) (*exec.Cmd, error) {
	java, err := tool("java", "Kafka needs Java 17 or later"+fmt.Sprintf(instead, kafkaVariable))
	if err != nil {
		return nil, err
	}
	jars := filepath.Join(software, "lib", "*")
	data, properties := filepath.Join(dir, "data"), filepath.Join(dir, "server.properties")
	if err := kafkaProperties(properties, data, ports); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); errors.Is(err, os.ErrNotExist) {
		var id [16]byte
		rand.Read(id[:])
		if err := output(ctx, dir, java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, "kafka.tools.StorageTool", "format",
			"-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", properties); err != nil {
			return nil, fmt.Errorf("format the folder of Kafka: %w", err)
		}
	}
	return exec.CommandContext(ctx, java, "-Xms256m", "-Xmx512m", "-cp", jars,
		"-Dlog4j2.configurationFile="+filepath.Join(software, "log4j2.properties"), "kafka.Kafka", properties), nil
}

func kafkaProperties(path, data string, ports map[string]int) error {
	t, err := template.ParseFS(embedded, "kafka/server.properties")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(t.Execute(f, map[string]any{
		"Broker": ports["broker"], "Controller": ports["controller"], "Data": data,
	}), f.Close())
}

// askKafka asks for what a consumer group needs: the brokers, and an answer of the
// group's coordinator, which a new broker has only after it has made a topic of its
// own.
func askKafka(ctx context.Context, _ string, ports map[string]int) error {
	client := &kafkago.Client{Addr: kafkago.TCP(loopback(ports["broker"])), Transport: &kafkago.Transport{}}
	defer client.Transport.(*kafkago.Transport).CloseIdleConnections()
	meta, err := client.Metadata(ctx, &kafkago.MetadataRequest{})
	if err != nil {
		return err
	}
	if len(meta.Brokers) != 1 || meta.Brokers[0].Port != ports["broker"] {
		return fmt.Errorf("its brokers are %v", meta.Brokers)
	}
	const group = "tidemark-services"
	coordinator, err := client.FindCoordinator(ctx, &kafkago.FindCoordinatorRequest{Key: group, KeyType: kafkago.CoordinatorKeyTypeConsumer})
	if err != nil {
		return err
	}
	if coordinator.Error != nil {
		return coordinator.Error
	}
	offsets, err := client.OffsetFetch(ctx, &kafkago.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{group: {0}}})
	if err != nil {
		return err
	}
	return offsets.Error
}
