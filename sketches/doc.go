// Package sketches summarises streams in bounded memory: viewers (how many
// different users), Count-Min (how often an item) and top-k (which items most).
package sketches
