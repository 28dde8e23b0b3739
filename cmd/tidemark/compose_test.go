package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
)

// TestComposeFile checks what can be checked without an engine for containers: that
// the files of docker-compose.yml and the Dockerfile are there, images are of one
// version, and the program knows, and takes, every setting that they name.
func TestComposeFile(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	services := mapping(t, file, "services")
	volumes := mapping(t, file, "volumes")
	for name := range services {
		s := mapping(t, services, name)
		if image, _ := s["image"].(string); !regexp.MustCompile(`:(local|\d+\.\d+(\.\d+)*)$`).MatchString(image) {
			t.Errorf("%s: image %q is of no one version", name, image)
		}
		mounts, _ := s["volumes"].([]any)
		for _, m := range mounts {
			source, _, _ := strings.Cut(m.(string), ":")
			if strings.HasPrefix(source, ".") {
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if _, ok := volumes[source]; !ok {
				t.Errorf("%s: volume %s is not declared", name, source)
			}
		}
		ports, _ := s["ports"].([]any)
		for _, p := range ports {
			if !strings.HasPrefix(p.(string), "127.0.0.1:") {
				t.Errorf("%s: port %v is published beyond loopback, and there are no keys", name, p)
			}
		}
	}
	checkEnvironment(t, mapping(t, mapping(t, services, "tidemark"), "environment"))

	docker, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	inside := make(map[string]any)
	for _, m := range regexp.MustCompile(`(TIDEMARK_\w+)=(\S+)`).FindAllStringSubmatch(string(docker), -1) {
		inside[m[1]] = m[2]
	}
	if len(inside) == 0 {
		t.Error("the Dockerfile sets nothing")
	}
	checkEnvironment(t, inside)
}

func mapping(t *testing.T, in map[string]any, name string) map[string]any {
	t.Helper()
	m, ok := in[name].(map[string]any)
	if !ok {
		t.Fatalf("%s is %T, want a mapping", name, in[name])
	}
	return m
}

// checkEnvironment has the program read these variables as its settings.
func checkEnvironment(t *testing.T, variables map[string]any) {
	t.Helper()
	var environ []string
	for name, value := range variables {
		environ = append(environ, name+"="+value.(string))
	}
	var out, errs strings.Builder
	if status := mainExit(environment{stdout: &out, stderr: &errs, environ: environ, args: []string{"config"}}); status != exitDone {
		t.Errorf("config with %q: exit status %d: %s", environ, status, errs.String())
	}
	for name := range variables {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%s does not come into the settings:\n%s", name, out.String())
		}
	}
}
