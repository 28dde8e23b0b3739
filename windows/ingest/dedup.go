package ingest

// idTable knows which event IDs stand in the look-back. It answers as nine sets
// of hashes would, one for the records of each generation, of which the oldest is
// dropped whole: an ID is in one of them exactly if the generation that it was
// last seen in is at most eight back. So one table of last generations does, and
// costs one cache miss instead of nine.
//
// A line of the table is a cache line of seven places. A hash belongs to the line
// that its high bits name (the low ones have chosen the partition), or if that was
// ever full, to one behind it. A place whose generation has left the look-back is
// free without having been touched, so nothing is swept in the usual course.
type idTable struct {
	lines []idLine // a power of two
	shift int      // from a hash to the index of its line
	known int      // places in the look-back
	tags  [256]struct {
		places int  // that have this tag
		inside bool // in the look-back
	}

	generation int64 // of the newest record
	tag        uint8 // of that generation
	rebuilt    int64 // the generation when the table was made
	started    bool
}

const (
	linePlaces = 7
	// Tags repeat after 255 generations, and a mark that a line was full stays
	// until the table is made anew: which is therefore done before.
	rebuildAfter = 64
)

// idLine is 64 bytes.
type idLine struct {
	hashes [linePlaces]uint64
	tags   [linePlaces]uint8 // of the generation a hash was last seen in; 0: never used
	passed bool              // a hash of this line, or of one before, was put behind it
}

// tagOf returns the tag of a generation: 1 to 255.
func tagOf(generation int64) uint8 { return uint8((generation%255+255)%255) + 1 }

// touch reads the line of a hash, for the sake of having it in the cache.
func (t *idTable) touch(hash uint64) uint64 {
	if len(t.lines) == 0 {
		return 0
	}
	return t.lines[hash>>t.shift].hashes[0]
}

// add takes note that a record of that generation has the ID, and reports whether
// one in its look-back had it already. Generations never fall.
func (t *idTable) add(hash uint64, generation int64) (before bool) {
	if generation != t.generation || !t.started {
		t.moveTo(generation)
	}
	if t.known*5 >= len(t.lines)*linePlaces*3 { // so at most 60 % full
		t.rebuild()
	}
	i := int(hash >> t.shift)
	line := &t.lines[i]
	free := (*idLine)(nil)
	place := 0
	for range t.lines { // once around at most: in a small table each line may have been passed
		for p, h := range line.hashes {
			if h == hash && line.tags[p] != 0 {
				before = t.tags[line.tags[p]].inside
				t.put(line, p, hash)
				return before
			}
			if free == nil && !t.tags[line.tags[p]].inside {
				free, place = line, p
			}
		}
		if !line.passed {
			break
		}
		i = (i + 1) & (len(t.lines) - 1)
		line = &t.lines[i]
	}
	for free == nil {
		line.passed = true
		i = (i + 1) & (len(t.lines) - 1)
		line = &t.lines[i]
		for p, tag := range line.tags {
			if !t.tags[tag].inside {
				free, place = line, p
				break
			}
		}
	}
	t.put(free, place, hash)
	return false
}

// put writes a place.
func (t *idTable) put(line *idLine, place int, hash uint64) {
	old := &t.tags[line.tags[place]]
	old.places--
	if !old.inside {
		t.known++
	}
	line.hashes[place], line.tags[place] = hash, t.tag
	t.tags[t.tag].places++
}

// moveTo makes a generation the newest one.
func (t *idTable) moveTo(generation int64) {
	if t.started && generation-t.generation > generations {
		clear(t.lines) // all have left
		for i := range t.tags {
			t.tags[i].places = 0
		}
		t.rebuilt = generation
	}
	if !t.started {
		t.rebuilt = generation
	}
	t.generation, t.tag, t.started = generation, tagOf(generation), true
	t.known = 0
	for i := range t.tags {
		t.tags[i].inside = false
	}
	for g := generation - generations; g <= generation; g++ {
		tag := &t.tags[tagOf(g)]
		tag.inside = true
		t.known += tag.places
	}
	if generation-t.rebuilt >= rebuildAfter {
		t.rebuild()
	}
}

// rebuild makes the table anew, of a size that fits what is in the look-back.
func (t *idTable) rebuild() {
	old := t.lines
	lines, shift := 1, 64
	for lines*linePlaces*9 < t.known*20 { // less than 45 % full
		lines, shift = lines*2, shift-1
	}
	t.lines, t.shift, t.known, t.rebuilt = make([]idLine, lines), shift, 0, t.generation
	for i := range t.tags {
		t.tags[i].places = 0
	}
	for i := range old {
		for p, tag := range old[i].tags {
			if t.tags[tag].inside {
				t.insert(old[i].hashes[p], tag)
			}
		}
	}
}

// insert puts a hash that the table does not have into it.
func (t *idTable) insert(hash uint64, tag uint8) {
	for i := int(hash >> t.shift); ; i = (i + 1) & (len(t.lines) - 1) {
		line := &t.lines[i]
		for p := range line.tags {
			if line.tags[p] == 0 {
				line.hashes[p], line.tags[p] = hash, tag
				t.tags[tag].places++
				t.known++
				return
			}
		}
		line.passed = true
	}
}
