package queries

import (
	"encoding/json"
	"time"

	"tidemark/sketches"
)

// Number is an answer with its 95 % bounds and the method it was come by.
type Number = sketches.Number

// AllTypes is the key in Counts of all types asked, together, and the parameter
// that asks for all types there are.
const AllTypes = "*"

// Counts is how many events there were, by type, and of AllTypes together where
// several are asked for.
type Counts map[string]Number

// Extent is what every answer says of its range.
type Extent struct {
	From      time.Time  `json:"from"`
	To        time.Time  `json:"to"`
	Clipped   bool       `json:"clipped,omitempty"` // retention has taken what was before From
	Complete  bool       `json:"complete"`          // the watermark has passed the range
	Final     bool       `json:"final"`             // only an import of history can still change it
	Watermark *time.Time `json:"watermark"`         // nil before the first event
}

// Texts are what the events said of an item last, "" where nothing.
type Texts struct {
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
	Image string `json:"image,omitempty"`
}

// Subject is what an answer is about: the whole site where it names no item.
type Subject struct {
	Item      string   `json:"item,omitempty"`
	Texts              // of Item
	Together  []string `json:"together,omitempty"` // several items as if they were one
	Type      string   `json:"type"`               // several are joined by commas
	Dimension string   `json:"dimension,omitempty"`
	Value     *string  `json:"value,omitempty"` // of the dimension
}

// Answer is what Viewers and Counts tell of one subject.
type Answer struct {
	Subject
	Extent
	Hint    string   `json:"hint,omitempty"`
	Viewers *Number  `json:"viewers,omitempty"` // nil where only counts are asked for
	Counts  Counts   `json:"counts"`
	Step    Step     `json:"step,omitempty"`
	Series  []Bucket `json:"series,omitempty"` // by time, zeros included
	Values  []Value  `json:"values,omitempty"` // by the dimension's value, the highest count first
}

// Bucket is one step of a series. It is half-open, like every range.
type Bucket struct {
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Complete bool      `json:"complete"`
	Viewers  *Number   `json:"viewers,omitempty"`
	Counts   Counts    `json:"counts"`
}

// Value is one value of the dimension that an answer is broken down by.
type Value struct {
	Value   string   `json:"value"`
	Other   bool     `json:"other,omitempty"` // the rest: no value of this name
	Viewers *Number  `json:"viewers,omitempty"`
	Counts  Counts   `json:"counts"`
	Series  []Bucket `json:"series,omitempty"`
}

// Answers is one answer for each item asked for, in the order asked.
type Answers []Answer

// MarshalJSON writes one answer as it is, and several as {"items": […]}.
func (a Answers) MarshalJSON() ([]byte, error) { return marshalSeveral(a) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (a *Answers) UnmarshalJSON(b []byte) error {
	return unmarshalSeveral(b, (*[]Answer)(a))
}

func marshalSeveral[T any](answers []T) ([]byte, error) {
	if len(answers) == 1 {
		return json.Marshal(answers[0])
	}
	return json.Marshal(several[T]{answers})
}

func unmarshalSeveral[T any](b []byte, answers *[]T) error {
	var all several[T]
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all.Items != nil {
		*answers = all.Items
		return nil
	}
	var one T
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*answers = []T{one}
	return nil
}

type several[T any] struct {
	Items []T `json:"items"`
}

// TopAnswer is a ranking, of items, or of a dimension's values.
type TopAnswer struct {
	By        By      `json:"by"`
	Type      string  `json:"type"`
	Dimension string  `json:"dimension,omitempty"`
	Value     *string `json:"value,omitempty"`
	Extent
	// Baseline is what a ranking by what rises compares with: the hour before, and the
	// same hour of last week where it is known.
	Baseline  []Stretch `json:"baseline,omitempty"`
	Certified bool      `json:"certified"` // nothing outside it can beat its last place
	Hint      string    `json:"hint,omitempty"`
	Items     []Ranked  `json:"items"`
}

// Stretch is a half-open range of time.
type Stretch struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Ranked is one place of a ranking. Equal numbers are in byte order of the names.
type Ranked struct {
	Rank  int     `json:"rank"` // from 1
	Item  string  `json:"item,omitempty"`
	Texts         // of Item
	Value *string `json:"value,omitempty"` // instead of Item, in a ranking of values
	// Score is how surprising Views are, in standard deviations, in a ranking by what
	// rises; Expected is what was to be expected in their place.
	Score    *float64     `json:"score,omitempty"`
	Expected *Expectation `json:"expected,omitempty"`
	Views    Number       `json:"views"`
	Viewers  Number       `json:"viewers,omitzero"` // without a method where they were not wanted
}
