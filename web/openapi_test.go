package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"tidemark/queries"
)

// declared is openapi.json, and what holds responses against it.
var declared = sync.OnceValues(func() (*v3.Document, validator.Validator) {
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	d, err := libopenapi.NewDocument(b)
	if err != nil {
		panic(err)
	}
	model, err := d.BuildV3Model()
	if err != nil {
		panic(err)
	}
	v, errs := validator.NewValidator(d, config.WithFormatAssertions(), config.WithStrictMode(),
		// Strict mode takes names that are data for undeclared ones, and the key that a
		// security scheme declares.
		config.WithStrictIgnorePaths("$.body.**.counts.*", "$.body.counts.*", "$.body.paths", "$.body.components", "$.body.info", "$.body.openapi", "$.body.servers", "$.body.security", "$.body.tags",
			"$.query.key"),
		config.WithStrictIgnoredHeadersExtra("X-Content-Type-Options", "Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Sec-Fetch-Site")) // of browsers, and of every response
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
	return &model.Model, v
})

// validate fails on a field, header or status that openapi.json does not declare,
// for a path that it does. A request that was answered with 200 has to be
// declared too.
func validate(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	doc, v := declared()
	if _, ok := doc.Paths.PathItems.Get(r.URL.Path); !ok {
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d of a path that is not declared", r.URL.Path, w.Code)
		}
		return
	}
	if w.Code == http.StatusOK {
		if ok, errs := v.ValidateHttpRequest(r); !ok {
			for _, e := range errs {
				t.Errorf("%s: request: %s: %s", r.URL, e.Message, e.Reason)
			}
		}
	}
	if ok, errs := v.ValidateHttpResponse(r, w.Result()); !ok {
		for _, e := range errs {
			t.Errorf("%s: %d: %s: %s\n%s", r.URL, w.Code, e.Message, e.Reason, w.Body)
		}
	}
}

func TestDocumentIsValid(t *testing.T) {
	doc, v := declared()
	if ok, errs := v.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s", e.Message, e.Reason)
		}
	}
	for _, path := range queries.Paths {
		if _, ok := doc.Paths.PathItems.Get("/v1/" + path); !ok {
			t.Errorf("/v1/%s is not declared", path)
		}
	}
}

// TestParametersAreThoseDeclared asks every path with every declared parameter of
// any path: what is not its own is refused, and what is its own is not unknown.
func TestParametersAreThoseDeclared(t *testing.T) {
	doc, _ := declared()
	h := handler(t, engine(t))
	all := make(map[string]bool)
	own := make(map[string][]string)
	for path, item := range doc.Paths.PathItems.FromOldest() {
		if item.Get == nil {
			continue
		}
		for _, p := range item.Get.Parameters {
			all[p.Name] = true
			own[path] = append(own[path], p.Name)
		}
	}
	for _, path := range queries.Paths {
		for name := range all {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/"+path+"?"+name+"=", http.NoBody))
			unknown := strings.Contains(w.Body.String(), `"`+name+`: unknown parameter`)
			if declared := slices.Contains(own["/v1/"+path], name); declared == unknown {
				t.Errorf("/v1/%s: %s is declared: %v, unknown: %v (%s)", path, name, declared, unknown, w.Body)
			}
		}
	}
}
