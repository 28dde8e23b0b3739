package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// journalSettings is what decides what becomes of the records of a journal.
type journalSettings struct {
	Dimensions        []string
	Rules             string
	Lateness          time.Duration
	MaxLateness       time.Duration
	MaxSkew           time.Duration
	DedupEvents       int
	MaxItemsPerWindow int
}

// settingsVersion is settings of a journal, and from which offset of each partition on
// they hold: nil is from the beginning.
type settingsVersion struct {
	From []int64 `json:",omitempty"`
	journalSettings
}

// settingsVersions is the settings of a journal in the order in which they came to hold.
// Its JSON is kept in the store.
type settingsVersions []settingsVersion

// maxVersions is how many are kept: whoever changes settings more often than that within
// the time that the journal is kept for can't have all of it counted again.
const maxVersions = 16

func parseVersions(text string) (v settingsVersions, err error) {
	if err = json.Unmarshal([]byte(text), &v); err == nil && len(v) == 0 {
		err = fmt.Errorf("there are none in %q", text)
	}
	return v, err
}

// newest returns the settings that hold for what comes.
func (v settingsVersions) newest() journalSettings { return v[len(v)-1].journalSettings }

// then returns them with others that hold from these offsets on.
func (v settingsVersions) then(now journalSettings, from []int64) settingsVersions {
	v = append(slices.Clip(v), settingsVersion{from, now})
	return v[max(0, len(v)-maxVersions):]
}

func (v settingsVersions) text() (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// settings returns those of this call that are kept for the journal.
func (l *live) settings() journalSettings {
	return journalSettings{
		Dimensions: l.store.Meta().Dimensions, Rules: l.cfg.Rules,
		Lateness: l.cfg.Lateness, MaxLateness: l.cfg.MaxLateness, MaxSkew: l.cfg.MaxSkew,
		DedupEvents: l.cfg.DedupEvents, MaxItemsPerWindow: l.cfg.MaxItemsPerWindow,
	}
}
