package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// status is what is told of one service.
type status struct {
	Name    string            `json:"name"`
	Running bool              `json:"running"`
	PID     int               `json:"pid,omitempty"`
	Address string            `json:"address"`        // HOST:PORT for clients
	Others  map[string]string `json:"also,omitempty"` // what else it listens on
	Env     string            `json:"env"`            // the variable that tests read
	Log     string            `json:"log"`
}

// report is what `up` and `status` print.
type report struct {
	Dir      string   `json:"dir"`
	Services []status `json:"services"`
}

func (i *instance) status() report {
	r := report{Dir: i.dir, Services: []status{}}
	for _, s := range services {
		p := i.state[s.name]
		if p == nil || p.Ports == nil {
			continue
		}
		st := status{
			Name: s.name, Running: p.alive(), Address: loopback(p.Ports[s.ports[0]]),
			Others: make(map[string]string), Env: s.variable, Log: i.folder(s) + "/log",
		}
		if st.Running {
			st.PID = p.PID
		}
		for _, name := range s.ports[1:] {
			st.Others[name] = loopback(p.Ports[name])
		}
		r.Services = append(r.Services, st)
	}
	return r
}

// printer shows reports.
type printer struct {
	w    io.Writer
	json bool
}

func (p printer) print(r report) error {
	if p.json {
		e := json.NewEncoder(p.w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, s := range r.Services {
		state := "not running"
		if s.Running {
			state = fmt.Sprintf("process %d", s.PID)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", s.Name, s.Address, state)
		for name, address := range s.Others {
			fmt.Fprintf(tw, "  %s\t%s\n", name, address)
		}
	}
	fmt.Fprintf(tw, "folder\t%s\n", r.Dir)
	return tw.Flush()
}
