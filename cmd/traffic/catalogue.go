package traffic

import (
	"fmt"
	"strings"
)

// The words of titles, and who has made what is watched.
var (
	kinds    = []string{"How to draw", "The history of", "A walk around", "Unboxing", "Ten facts about", "Repairing", "Cooking with", "The sound of", "Why we love", "A year without"}
	manners  = []string{"an old", "a tiny", "the last", "a forgotten", "the perfect", "a wooden", "the loudest", "a frozen", "the smallest", "a golden", "a borrowed"}
	things   = []string{"lighthouse", "tram", "sourdough", "piano", "volcano", "bicycle", "market", "telescope", "garden", "castle", "synthesizer", "glacier", "submarine"}
	channels = []string{"ana", "ben", "chen", "dara", "eli", "fay", "gus", "hana", "ivo", "june", "kofi", "lena"}
)

// choice is a value with its weight among others.
type choice struct {
	value  string
	weight int
}

// The values of the dimensions that belong to a person, and where visits come from.
var (
	countries = choices("country", choice{"US", 30}, choice{"IN", 16}, choice{"DE", 14}, choice{"BR", 12}, choice{"GB", 9}, choice{"FR", 8}, choice{"JP", 7}, choice{"NG", 4})
	devices   = choices("device", choice{"phone", 58}, choice{"desktop", 26}, choice{"tablet", 9}, choice{"tv", 7})
	sources   = choices("source", choice{"search", 34}, choice{"direct", 28}, choice{"social", 25}, choice{"newsletter", 13})
)

// Dimensions are the properties of the events of a stream to break numbers down by.
func Dimensions() []string { return []string{"country", "device", "source", "channel"} }

// choices returns a table of members of a JSON object, each as often as it weighs.
func choices(name string, from ...choice) []string {
	var table []string
	for _, c := range from {
		member := fmt.Sprintf(`,%q:%q`, name, c.value)
		for range c.weight {
			table = append(table, member)
		}
	}
	return table
}

// item is one that people look at, as members of a JSON object.
type item struct {
	name string // with its channel
	info string // title, url and image
}

// newItem returns the n-th item. Its words change at different steps, so that the first
// titles do not look alike.
func newItem(n int) item {
	title := strings.Join([]string{kinds[n%len(kinds)], manners[(n/3)%len(manners)], things[(n*5+n/13)%len(things)]}, " ")
	return item{
		name: fmt.Sprintf(`"item":"video-%d","channel":%q`, n, channels[(n*7)%len(channels)]),
		info: fmt.Sprintf(`,"title":%q,"url":"https://videos.example/watch/%d","image":"https://videos.example/image/%d.jpg"`, title, n, n),
	}
}
