package main

import (
	"math"
	"net"
	"net/netip"
	"time"

	"tidemark/cmd/traffic"
	"tidemark/windows/store"
)

// Config holds every setting. Its defaults, names and limits are in settings.
type Config struct {
	Data        string // folder of the store and the hash key
	HashKeyFile string // "": hash.key in Data
	Server      string // URL that questions go to; "": to Data
	Listen      string // host:port
	Open        bool   // serve on other addresses than loopback, to everybody
	KeysFile    string // of the API keys; "": keys.json in Data
	Key         string // that questions to Server are asked with

	Origins       []string // of pages that may ask and send
	Proxies       []netip.Prefix
	LimitRequests int // of a client, a second; 0: none
	LimitEvents   int // of a client, a second; 0: none

	MaxConnections int // of a server

	LiveQuestions    int // that one socket may watch
	LiveClients      int // of one address that may watch
	LiveMessageBytes int // of what a client may send to a socket

	ViewTypes  []string // kept with the data
	Dimensions []string // kept with the data
	Partitions int      // kept with the data
	Rules      string

	Lateness          time.Duration
	MaxLateness       time.Duration
	MaxSkew           time.Duration
	Idle              time.Duration
	DedupEvents       int // look-back of event IDs, in records a partition
	MaxItemsPerWindow int // slots a minute, over all partitions
	WindowMemory      int // bytes of open windows, over all partitions

	JournalRetention time.Duration

	ClickHouse struct {
		Addr         []string // HOST:PORT each; or none
		Database     string
		User         string
		PasswordFile string
		TLS          bool
		TLSCA        string        // file of certificates; sets TLS
		Migrate      string        // run or print
		Retention    time.Duration // whole days
	}

	Retention struct{ Minute, Quarter, Hour, Day time.Duration }

	Load struct { // what load and demo send
		Rate        float64 // events a second
		Duration    time.Duration
		Backlog     time.Duration // how long before now it begins
		Seed        int
		Items       int
		File        string  // events that are sent instead; "": none
		Speed       float64 // how many times faster than they happened
		Connections int
		Batch       int
	}

	texts   map[string]sourced // every setting as text
	command string             // that was called, and the URL that it serves: see holder
	serving string
}

// sourced is a setting's value as it was given, and by whom.
type sourced struct {
	text, origin string
	given        bool // by anybody: it is not the default
}

// Given reports whether somebody set the setting: its value is not the default.
func (c *Config) Given(name string) bool { return c.texts[name].given }

// forever is a duration without an end.
const forever = time.Duration(math.MaxInt64)

// clickHouseSettings are those of delivery to ClickHouse.
var clickHouseSettings = []string{
	"clickhouse.addr", "clickhouse.database", "clickhouse.user", "clickhouse.password-file",
	"clickhouse.tls", "clickhouse.tls-ca", "clickhouse.migrate", "clickhouse.retention",
}

// setting is one row of the table of settings: the flag --name, the environment
// variable TIDEMARK_NAME and the line "name:" of the file.
type setting struct {
	name     string
	fallback string // the default, as one would type it
	usage    string
	parse    func(text string) error // into the Config; says what is allowed
	kind     settingKind
}

// settingKind says how a setting looks as a flag.
type settingKind uint8

const (
	oneValue settingKind = iota
	list                 // separated by commas, or given several times
	yesNo                // needs no value
	secret               // is not shown
)

// settings returns the table, which parses into c.
func settings(c *Config) []setting {
	return []setting{
		{"data", "tidemark-data", "folder of the store and the hash key", nonEmpty(&c.Data), oneValue},
		{"hash-key-file", "", "file of the secret that users and items are hashed with; made on first use (default hash.key in --data)", anyText(&c.HashKeyFile), oneValue},
		{"server", "", "URL of a running server, to ask it instead of a folder or to send to it", httpURL(&c.Server), oneValue},
		{"listen", "127.0.0.1:8080", "address to serve on", hostPort(&c.Listen), oneValue},
		{"open", "false", "serve on an address that is not loopback without keys: to everybody who can reach it", boolean(&c.Open), yesNo},
		{"keys", "", "file of the API keys, made by tidemark keys (default keys.json in --data)", anyText(&c.KeysFile), oneValue},
		{"key", "", "API key to send to --server", anyText(&c.Key), secret},
		{"allow-origins", "", "origins of web pages that may ask and send, such as https://example.org; * is all", origins(&c.Origins), list},
		{"trusted-proxies", "", "addresses or networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8", networks(&c.Proxies), list},
		{"limit-requests", "200", "requests a second that one client may make, on average; 0 is no limit", integer(&c.LimitRequests, 0, 1<<30), oneValue},
		{"limit-events", "100000", "events a second that one client may send, on average; 0 is no limit", integer(&c.LimitEvents, 0, 1<<30), oneValue},
		{"max-connections", "10000", "connections at once; beyond, those are closed that have waited longest for a request", integer(&c.MaxConnections, 1, 1<<20), oneValue},
		{"live-questions", "50", "how many questions one websocket may watch", integer(&c.LiveQuestions, 1, 10_000), oneValue},
		{"live-clients", "1000", "how many connections of one address may watch; a proxy is one address", integer(&c.LiveClients, 1, 1_000_000), oneValue},
		{"live-message-bytes", "16KiB", "how long a message to the websocket may be; it holds a question's URL", byteSize(&c.LiveMessageBytes, 256), oneValue},
		{"view-types", "view", "event types that are views, the first for events without a type; kept with the data", names(&c.ViewTypes, 1), list},
		{"dimensions", "", "properties of events to break numbers down by; kept with the data", dimensions(&c.Dimensions), list},
		{"partitions", "4", "how many parts the users are divided into; kept with the data", integer(&c.Partitions, 1, 256), oneValue},
		{"rules", "none", "which events count: none is all that are events", oneOf(&c.Rules, "none"), oneValue},
		{"lateness", "30s", "how long after its end a minute is still in time", duration(&c.Lateness, 0), oneValue},
		{"max-lateness", "24h", "how long before its arrival an event may have happened", duration(&c.MaxLateness, 0), oneValue},
		{"idle", "5s", "how long a partition without events waits before time alone closes its minutes", duration(&c.Idle, 0), oneValue},
		{"journal-retention", "48h", "how long the journal keeps events that are in the store, to be counted again", duration(&c.JournalRetention, 0), oneValue},
		{"max-skew", "1m", "how far an event's time may lie after its record's timestamp", duration(&c.MaxSkew, 0), oneValue},
		{"dedup-events", "262144", "how many records of a partition an event ID is remembered for", integer(&c.DedupEvents, 8, 1<<30), oneValue},
		{"max-items-per-window", "1000000", "items of a minute that are counted one by one; beyond, the answers say count-min", integer(&c.MaxItemsPerWindow, 16, 1<<30), oneValue},
		{"window-memory", "256MiB", "memory of minutes that are open; beyond, they are sealed and completed later", byteSize(&c.WindowMemory, 1<<20), oneValue},
		{"retention.minute", "48h", "how long single minutes are kept, from the newest minute on; forever is all there is", duration(&c.Retention.Minute, time.Hour), oneValue},
		{"retention.quarter", "35d", "how long quarter hours are kept, of which every time zone's days are made", duration(&c.Retention.Quarter, time.Hour), oneValue},
		{"retention.hour", "400d", "how long hours are kept", duration(&c.Retention.Hour, time.Hour), oneValue},
		{"retention.day", "forever", "how long days are kept; lifetime totals are kept for ever", duration(&c.Retention.Day, time.Hour), oneValue},
		{"rate", "200", "events a second that are sent, on the average of a day", number(&c.Load.Rate, 0.001, traffic.MaxRate), oneValue},
		{"duration", "forever", "how long events are sent", duration(&c.Load.Duration, 0), oneValue},
		{"backlog", "0s", "how long ago the first of the events sent happened: up to now they are sent as fast as they are taken", duration(&c.Load.Backlog, 0), oneValue},
		{"seed", "1", "which stream is sent: the same seed is the same stream", integer(&c.Load.Seed, 0, math.MaxInt), oneValue},
		{"items", "10000", "how many different items the events sent are about", integer(&c.Load.Items, traffic.MinItems, traffic.MaxItems), oneValue},
		{"file", "", "file of events to be sent, as if its first one happened now, instead of made-up ones; any that replay reads", anyText(&c.Load.File), oneValue},
		{"speed", "1", "how many times faster the events of a file are sent than they happened", number(&c.Load.Speed, 0.001, 1e9), oneValue},
		{"connections", "4", "how many requests send events at the same time", integer(&c.Load.Connections, 1, traffic.MaxConnections), oneValue},
		{"batch", "1000", "how many events a request sends at most", integer(&c.Load.Batch, 1, traffic.MaxBatch), oneValue},
		{"clickhouse.addr", "", "HOST:PORT of ClickHouse's native protocol, which gets what is sealed from then on; several are tried in turn; none: not wanted any more", servers(&c.ClickHouse.Addr), list},
		{"clickhouse.database", "tidemark", "database of the tables, which belongs to this deployment alone", databaseName(&c.ClickHouse.Database), oneValue},
		{"clickhouse.user", "default", "user who writes the tables, and makes them", nonEmpty(&c.ClickHouse.User), oneValue},
		{"clickhouse.password-file", "", "file of the user's password (default none)", anyText(&c.ClickHouse.PasswordFile), oneValue},
		{"clickhouse.tls", "false", "speak TLS with ClickHouse", boolean(&c.ClickHouse.TLS), yesNo},
		{"clickhouse.tls-ca", "", "file of the certificates that vouch for ClickHouse; sets clickhouse.tls (default the system's)", anyText(&c.ClickHouse.TLSCA), oneValue},
		{"clickhouse.migrate", "run", "run makes the tables, or brings them up to date, where needed; print prints the SQL for that, and ends", oneOf(&c.ClickHouse.Migrate, "run", printMigrations), oneValue},
		{"clickhouse.retention", "forever", "how long ClickHouse keeps rows, in whole days such as 400d", wholeDays(&c.ClickHouse.Retention), oneValue},
	}
}

// keep returns for how long each level is kept. A level is kept for as long as the
// one below at least: who keeps minutes for longer need not name the others.
func (c *Config) keep() store.Retention {
	r := store.Retention{Minute: c.Retention.Minute, Quarter: c.Retention.Quarter, Hour: c.Retention.Hour, Day: c.Retention.Day}
	below := r.Minute
	for _, l := range []struct {
		name string
		keep *time.Duration
	}{{"quarter", &r.Quarter}, {"hour", &r.Hour}, {"day", &r.Day}} {
		if !c.Given("retention." + l.name) {
			*l.keep = max(*l.keep, below)
		}
		below = *l.keep
	}
	for _, keep := range []*time.Duration{&r.Minute, &r.Quarter, &r.Hour, &r.Day} {
		if *keep == forever {
			*keep = 0
		}
	}
	return r
}

// loopback reports whether only this machine can reach the address.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
