package journal

// ring holds the newest part of the log in memory: the bytes at positions [start, end).
type ring struct {
	buf        []byte
	start, end int64
}

// write adds the bytes that follow on; the oldest make room for them.
func (r *ring) write(p []byte) {
	r.end += int64(len(p))
	if over := len(p) - len(r.buf); over > 0 {
		p = p[over:]
	}
	for at := r.end - int64(len(p)); len(p) > 0; {
		n := copy(r.buf[at%int64(len(r.buf)):], p)
		p, at = p[n:], at+int64(n)
	}
	r.start = max(r.start, r.end-int64(len(r.buf)))
}

// read fills p with the bytes from the position on, if it has them all.
func (r *ring) read(p []byte, position int64) bool {
	if position < r.start || position+int64(len(p)) > r.end {
		return false
	}
	for at := position; len(p) > 0; {
		n := copy(p, r.buf[at%int64(len(r.buf)):])
		p, at = p[n:], at+int64(n)
	}
	return true
}
