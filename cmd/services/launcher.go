package main

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// launcherCommand is the subcommand, not for people, that becomes ClickHouse:
// LIBRARY DATA_DIR NATIVE_PORT HTTP_PORT.
const launcherCommand = "clickhouse-server"

// hold keeps the library's command line busy for as long as the process lives: the
// listeners run beside it.
const hold = "SELECT sleepEachRow(1) FROM numbers(1000000000) " +
	"SETTINGS function_sleep_max_microseconds_per_block = 0, max_block_size = 1 FORMAT Null"

// launchClickHouse loads the library that is ClickHouse into this process, and has
// it listen. It returns only if the server ends by itself, and why.
func launchClickHouse(args []string) error {
	library, data, native, http := args[0], args[1], args[2], args[3]
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("load the library of ClickHouse: %w", err)
	}
	var run func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	purego.RegisterLibFunc(&run, lib, "chdb_query_cmdline")
	var failure func(unsafe.Pointer) string
	purego.RegisterLibFunc(&failure, lib, "chdb_result_error")

	argv := cStrings(
		"clickhouse", "--multiquery", "--path="+data,
		"--tcp_port="+native, "--http_port="+http, "--listen_host=127.0.0.1",
		"--query=SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; "+hold,
	)
	result := run(int32(len(argv)-1), unsafe.Pointer(&argv[0]))
	return fmt.Errorf("the server ended: %s", failure(result))
}

// cStrings is an argument vector of C: pointers to strings that end in a zero, and
// a nil behind the last.
func cStrings(args ...string) []*byte {
	out := make([]*byte, len(args)+1)
	for i, arg := range args {
		out[i] = &append([]byte(arg), 0)[0]
	}
	return out
}
