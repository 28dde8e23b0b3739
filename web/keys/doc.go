// Package keys says who may: API keys, the file that they are kept in, and what each
// of them allows.
//
// Invariants:
//
//	K1. A key itself is kept nowhere: the file has its SHA-256. A key is 256 random
//	    bits, so that no slower hash makes it harder to guess.
//	K2. As long as no file was made there are no keys, and everybody may do all. From
//	    the first key on nobody may do anything without one, also where all keys were
//	    revoked, or the file is gone or can't be read.
//	K3. A file is changed whole or not at all, by one process at a time; what it says
//	    is never half understood: a field that is not known could be a limit.
package keys
