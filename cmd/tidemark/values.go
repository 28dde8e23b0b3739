package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/sinks/clickhouse"
	"tidemark/windows/ingest"
)

// The functions of this file make the parsers of settings: each stores into its
// target, or returns what is allowed.

func anyText(to *string) func(string) error {
	return func(text string) error {
		*to = text
		return nil
	}
}

func nonEmpty(to *string) func(string) error {
	return func(text string) error {
		if text == "" {
			return errors.New("must not be empty")
		}
		*to = text
		return nil
	}
}

func oneOf(to *string, allowed ...string) func(string) error {
	return func(text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("must be %s, got %q", strings.Join(allowed, " or "), text)
		}
		*to = text
		return nil
	}
}

func boolean(to *bool) func(string) error {
	return func(text string) error {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("must be true or false, got %q", text)
		}
		*to = v
		return nil
	}
}

func integer(to *int, low, high int) func(string) error {
	return func(text string) error {
		v, err := strconv.Atoi(text)
		if err != nil || v < low {
			return fmt.Errorf("must be a whole number from %d to %d, got %q", low, high, text)
		}
		*to = v
		return nil
	}
}

func number(to *float64, low, high float64) func(string) error {
	return func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= low && v <= high) {
			return fmt.Errorf("must be a number from %v to %v, got %q", low, high, text)
		}
		*to = v
		return nil
	}
}

// names parses a list without doubles of at least atLeast names of 1–64 bytes.
func names(to *[]string, atLeast int) func(string) error {
	return func(text string) error {
		var all []string
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if len(name) > 64 || slices.Contains(all, name) {
				return fmt.Errorf("must be different names of at most 64 bytes, separated by commas, got %q", text)
			}
			all = append(all, name)
		}
		if len(all) < atLeast {
			return fmt.Errorf("must be at least %d, separated by commas, got %q", atLeast, text)
		}
		*to = all
		return nil
	}
}

// dimensions parses names that events have no field of.
func dimensions(to *[]string) func(string) error {
	return func(text string) error {
		return errors.Join(names(to, 0)(text), ingest.CheckDimensions(*to))
	}
}

// duration parses Go's durations, whole days as "7d", and "forever".
func duration(to *time.Duration, low time.Duration) func(string) error {
	return func(text string) error {
		v, err := parseDuration(text)
		switch {
		case err == nil && v < low:
			return fmt.Errorf("must be at least %v, got %q", low, text)
		case err != nil || v < 0:
			return fmt.Errorf("must be a duration such as 90s, 24h, 7d or forever, got %q", text)
		}
		*to = v
		return nil
	}
}

func parseDuration(text string) (time.Duration, error) {
	if text == "forever" {
		return forever, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// byteSize parses a number of bytes, or of KiB, MiB or GiB.
func byteSize(to *int, low int) func(string) error {
	units := []struct {
		suffix string
		shift  int
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"", 0}}
	return func(text string) error {
		for _, u := range units {
			number, ok := strings.CutSuffix(text, u.suffix)
			if !ok {
				continue
			}
			// 2^20 GiB is beyond any machine; the bound keeps the shift from overflowing.
			v, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
			if err != nil || v > 1<<(50-u.shift) || int(v)<<u.shift < low {
				break
			}
			*to = int(v) << u.shift
			return nil
		}
		return fmt.Errorf("must be a size of at least %d bytes such as 256MiB, got %q", low, text)
	}
}

func hostPort(to *string) func(string) error {
	return func(text string) error {
		_, port, err := net.SplitHostPort(text)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("must be HOST:PORT such as 127.0.0.1:8080, got %q", text)
		}
		*to = text
		return nil
	}
}

// servers parses a list of HOST:PORT, or none.
func servers(to *[]string) func(string) error {
	return func(text string) error {
		*to = nil
		for server := range strings.SplitSeq(text, ",") {
			if server = strings.TrimSpace(server); server == "" {
				continue
			}
			var addr string
			if err := hostPort(&addr)(server); err != nil && text != noClickHouse {
				return fmt.Errorf("must be HOST:PORT such as 127.0.0.1:9000, several of them separated by commas, or none, got %q", text)
			}
			*to = append(*to, server)
		}
		return nil
	}
}

func databaseName(to *string) func(string) error {
	return func(text string) error {
		*to = text
		return clickhouse.CheckDatabase(text)
	}
}

// wholeDays parses durations of whole days.
func wholeDays(to *time.Duration) func(string) error {
	return func(text string) error {
		const day = 24 * time.Hour
		if err := duration(to, day)(text); err != nil {
			return err
		}
		if *to != forever && (*to%day != 0 || *to > clickhouse.MaxRetention*day) {
			return fmt.Errorf("must be whole days, at most %dd, such as 400d, or forever, got %q", clickhouse.MaxRetention, text)
		}
		return nil
	}
}

func httpURL(to *string) func(string) error {
	return func(text string) error {
		u, err := url.Parse(text)
		if text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
			return fmt.Errorf("must be a URL such as http://127.0.0.1:8080, got %q", text)
		}
		*to = strings.TrimSuffix(text, "/")
		return nil
	}
}

// origins parses a list of origins of web pages.
func origins(to *[]string) func(string) error {
	return func(text string) error {
		var all []string
		for one := range strings.SplitSeq(text, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			u, err := url.Parse(one)
			if one != "*" && (err != nil || u.Host == "" || u.Scheme+"://"+u.Host != one) {
				return fmt.Errorf("must be origins such as https://example.org, or *, separated by commas, got %q", one)
			}
			all = append(all, one)
		}
		*to = all
		return nil
	}
}

// networks parses a list of addresses and networks.
func networks(to *[]netip.Prefix) func(string) error {
	return func(text string) error {
		var all []netip.Prefix
		for one := range strings.SplitSeq(text, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			network, err := netip.ParsePrefix(one)
			if a, aerr := netip.ParseAddr(one); aerr == nil {
				network, err = a.Prefix(a.BitLen())
			}
			if err != nil {
				return fmt.Errorf("must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, separated by commas, got %q", one)
			}
			all = append(all, network)
		}
		*to = all
		return nil
	}
}
