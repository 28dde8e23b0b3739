package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// newConfig returns the command that shows the settings in force.
func newConfig(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force, and where each comes from",
		Args:  withArgs(0, 0, "config takes no arguments"),
	}
	var all []string
	for _, s := range settings(new(Config)) {
		all = append(all, s.name)
	}
	addSettings(cmd, all...)
	asJSON := cmd.Flags().Bool("json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadConfig(cmd, env.environ)
		if err != nil {
			return err
		}
		if *asJSON {
			type row struct {
				Value string `json:"value"`
				From  string `json:"from"`
			}
			rows := make(map[string]row, len(all))
			for _, name := range all {
				rows[name] = row{c.texts[name].text, c.texts[name].origin}
			}
			return json.NewEncoder(env.stdout).Encode(rows)
		}
		table := tabwriter.NewWriter(env.stdout, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "setting\tvalue\tfrom")
		for _, name := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, c.texts[name].text, c.texts[name].origin)
		}
		return table.Flush()
	}
	return cmd
}
