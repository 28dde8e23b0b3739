// Package sketches summarises streams in bounded memory: Viewers says how many
// different users there were, CountMin how often an item came, TopK which items
// came most. Viewers merge, tables are added, and the items of several lists are
// candidates for whom the sum of their tables is asked: what was summarised in
// parts can be summarised together. It knows nothing of events, minutes or disks.
//
// Hashes. Everything enters by a keyed hash of 64 or 128 bits (Hasher), made
// under the secret Key of a deployment: with a public seed anybody could choose
// names that all fall into one register or onto one counter. A hash must be as
// good as random in all its bits: viewers use the leading ones, Count-Min rows
// 16 each. Sketches carry the KeyID and never merge with those of another.
//
// Invariants. Tests cite them by number.
//
//	S1. A Viewers is at each moment what the library github.com/axiomhq/hyperloglog
//	    holds after InsertHash of the same hashes: its tokens are those of New14,
//	    its registers those of NewNoSparse, byte for byte, and its value is what
//	    Estimate returns.
//	S2. A Viewers is dense exactly when it has seen more than MaxTokens different
//	    tokens. So its state, its encoding and its Number are functions of the set
//	    of users: adding and merging are commutative, associative and idempotent,
//	    in every pairing of forms.
//	S3. Up to MaxInline different tokens the Number is called exact. Beyond, its
//	    bounds hold the truth with a probability of at least 95 %.
//	S4. An estimate of a CountMin is never below the count, and above it by more
//	    than Error with a probability of at most e⁻⁴.
//	S5. S4 holds of merged tables as well. That is all that holds of them: with
//	    conservative update the sum of two tables is not the table of both streams,
//	    and what a table holds depends on the order of its events. Tables may be
//	    added but never subtracted.
//	S6. A TopK never holds an item twice, and no item outside it was last offered
//	    with a count above Min.
//	S7. Merge changes its receiver alone. Of two keys it changes nothing and
//	    returns an error wrapping ErrKey.
//	S8. A decoder takes any bytes: it allocates no more than a small multiple of
//	    what it was given and one sketch, and returns a sketch or an error wrapping
//	    ErrMalformed. The encoding of equal states is equal.
//
// The bounds. Of n users two have the same token, a prefix of 25 bits, with a
// probability of about n²/2²⁶: 2·10⁻⁶ at 12, 1.6 % at 1,024. So the number of
// different tokens is never above the truth and, in at least 98.4 % of all cases,
// is the truth: low, value and high are the same as long as there are tokens. The
// estimate from registers has a relative standard error σ of 1.04/√16,384 =
// 0.81 % (measured: 0.55 to 0.77 %), and the bounds are ±1.96 σ around the truth,
// turned round: n/(1 ± 1.96 σ).
//
// A counter of a plain Count-Min exceeds the count by e/w of the total or more
// with a probability of at most 1/e (Markov), and the least of four by e⁻⁴, if
// rows are independent, which 16 bits of their own each make them. Conservative
// update raises no counter above the plain one, and none that an item stands on
// below that item's count; both pass on to sums, which gives S5.
package sketches
