package web

import (
	_ "embed" // openapi.json
	"net/http"
)

//go:embed openapi.json
var document []byte

// sendDocument sends what this API is, in OpenAPI 3.1.
func sendDocument(w http.ResponseWriter, _ *http.Request) error {
	send(w, http.StatusOK, "application/json", document)
	return nil
}
