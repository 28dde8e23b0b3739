//go:build failpoint

package main

// Where the process is to end itself, see windows/store/FORMAT.md: of this build
// only, and no setting.
func init() { notSettings = append(notSettings, envPrefix+"CRASH") }
