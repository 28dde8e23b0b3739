package queries

import "fmt"

// Fault is a question that cannot be answered as it was asked. Its text is for
// whoever asked: it names the parameter, and what is allowed.
type Fault struct {
	Parameter string
	Detail    string
	// Refused: the question is well formed, but asks for more, or for other
	// things, than there can be. Else it is malformed.
	Refused bool
}

// Error returns "parameter: detail".
func (f *Fault) Error() string {
	if f.Parameter == "" {
		return f.Detail
	}
	return f.Parameter + ": " + f.Detail
}

func malformed(parameter, format string, args ...any) error {
	return &Fault{Parameter: parameter, Detail: fmt.Sprintf(format, args...)}
}

func refused(parameter, format string, args ...any) error {
	return &Fault{Parameter: parameter, Detail: fmt.Sprintf(format, args...), Refused: true}
}
