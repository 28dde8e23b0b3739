// Package archtest holds, as tests, the rules of this repository that no linter knows.
package archtest
