package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"

	"tidemark/queries"
)

const envPrefix = "TIDEMARK_"

// notSettings are variables of the environment that are called like a setting and
// are none.
var notSettings = []string{envPrefix + "CONFIG"}

// envName returns the environment variable of a setting: TIDEMARK_VIEW_TYPES.
func envName(name string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// addSettings gives cmd a flag for each of the named settings.
func addSettings(cmd *cobra.Command, which ...string) {
	for _, s := range settings(new(Config)) {
		if !slices.Contains(which, s.name) {
			continue
		}
		f := cmd.Flags().VarPF(&settingFlag{text: s.fallback, kind: s.kind}, s.name, "", s.usage)
		if s.kind == yesNo {
			f.NoOptDefVal = "true"
		}
	}
}

// settingFlag is a setting's value as a flag: the text, parsed with the other
// layers' later, so that all faults are found together.
type settingFlag struct {
	text string
	kind settingKind
	set  bool
}

// String returns the text.
func (f *settingFlag) String() string { return f.text }

// Set takes the text; a list grows with each.
func (f *settingFlag) Set(text string) error {
	if f.kind == list && f.set {
		text = f.text + "," + text
	}
	f.text, f.set = text, true
	return nil
}

// Type names the kind in the help.
func (f *settingFlag) Type() string {
	return [...]string{oneValue: "value", list: "list", yesNo: "bool", secret: "value"}[f.kind]
}

// layer is one place where settings come from.
type layer struct {
	origin func(name string) string
	values *koanf.Koanf
}

// loadConfig returns the settings in force for cmd. Its error joins every fault of
// every layer: unknown names, and values that are wrong.
func loadConfig(cmd *cobra.Command, environ []string) (Config, error) {
	c := Config{command: cmd.CommandPath()}
	table := settings(&c)
	layers, faults := readLayers(cmd, environ, table)
	c.texts = make(map[string]sourced, len(table))
	for _, s := range table {
		for i, l := range layers { // the strongest first
			if !l.values.Exists(s.name) {
				continue
			}
			text, origin := textOf(l.values.Get(s.name)), l.origin(s.name)
			c.texts[s.name] = sourced{text: shown(s, text), origin: origin, given: i < len(layers)-1}
			if err := s.parse(text); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w (%s)", s.name, err, origin))
			}
			break
		}
	}
	if len(faults) > 0 {
		return Config{}, wrongUsage(cmd, errors.Join(faults...))
	}
	return c, nil
}

// shown returns a value as it may be seen.
func shown(s setting, text string) string {
	if s.kind == secret && text != "" {
		return "(secret)"
	}
	return text
}

// readLayers returns the layers, the strongest first and the defaults last.
func readLayers(cmd *cobra.Command, environ []string, table []setting) ([]layer, []error) {
	var faults []error
	load := func(origin func(string) string, p koanf.Provider, parser koanf.Parser) layer {
		l := layer{origin, koanf.New(".")}
		if err := l.values.Load(p, parser); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", origin(""), err))
		}
		return l
	}
	always := func(s string) func(string) string { return func(string) string { return s } }

	var known []string
	defaults := make(map[string]any, len(table))
	byEnv := make(map[string]string, len(table))
	for _, s := range table {
		known = append(known, s.name)
		defaults[s.name] = s.fallback
		byEnv[envName(s.name)] = s.name
	}

	layers := []layer{
		load(func(name string) string { return "flag --" + name }, posflag.Provider(cmd.Flags(), ".", nil), nil),
		load(func(name string) string { return "environment " + envName(name) }, env.Provider(".", env.Opt{
			Prefix:      envPrefix,
			EnvironFunc: func() []string { return environ },
			TransformFunc: func(variable, value string) (string, any) {
				name, ok := byEnv[variable]
				if !ok && !slices.Contains(notSettings, variable) {
					faults = append(faults, fmt.Errorf("unknown setting %s in the environment%s", variable, didYouMean(variable, envNames(known))))
				}
				return name, value
			},
		}), nil),
	}
	if path := configPath(cmd, environ); path != "" {
		l := load(always("file "+path), file.Provider(path), yaml.Parser())
		for _, name := range l.values.Keys() {
			if !slices.Contains(known, name) {
				faults = append(faults, fmt.Errorf("unknown setting %s in %s%s", name, path, didYouMean(name, known)))
			}
		}
		layers = append(layers, l)
	}
	return append(layers, load(always("default"), confmap.Provider(defaults, "."), nil)), faults
}

// didYouMean returns "; did you mean NAME?" where a known name is near.
func didYouMean(name string, known []string) string {
	near := queries.Nearest(name, known)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

func envNames(settings []string) []string {
	all := make([]string, len(settings))
	for i, name := range settings {
		all[i] = envName(name)
	}
	return all
}

// configPath returns the file of settings, "" if none is named.
func configPath(cmd *cobra.Command, environ []string) string {
	if path, err := cmd.Flags().GetString("config"); err == nil && path != "" {
		return path
	}
	for _, e := range environ {
		if path, ok := strings.CutPrefix(e, envPrefix+"CONFIG="); ok {
			return path
		}
	}
	return ""
}

// textOf returns a value of a layer as one would type it: YAML has lists, numbers
// and booleans.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		texts := make([]string, len(v))
		for i, e := range v {
			texts[i] = textOf(e)
		}
		return strings.Join(texts, ",")
	default:
		return fmt.Sprint(v)
	}
}
