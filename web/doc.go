// Package web serves the questions over HTTP: paths and parameters in, JSON or CSV
// out, and every refusal as a problem document (RFC 9457). Every question can be
// watched too, by server-sent events or a websocket.
//
// Invariants:
//
//	H1. A handler returns an error; one adapter turns it into a response, and logs
//	    what is ours. Nothing of the inside reaches the client.
//	H2. An answer is made whole before its first byte is sent: a status of 200 is
//	    never followed by half an answer. A backup alone is too large for that: where
//	    it breaks off, so does the connection.
//	H3. Every question has a deadline, and only so many run at once; what waits
//	    longer than its deadline is told to come again.
//	H4. What is sent is as openapi.json says: nothing undeclared, in any response.
//	H5. Of what is watched, each different question is answered at most once a second,
//	    and each answer is encoded once, however many watch it. It is the answer of
//	    the GET.
//	H6. Nobody waits for a client: what it has not taken yet is replaced by the newest,
//	    and whoever takes nothing is left behind. A client that has seen an answer's
//	    id is told nothing until there is another.
//	H7. What events say is text in every page, never HTML, and a URL of theirs is
//	    followed only where it is http or https; the policy of the pages lets nothing
//	    but their own scripts run. Scripts for pages of others may be loaded by any,
//	    but what they ask and send is ruled by Origins like any request.
//	H8. Who may is decided in one place, before a handler runs; a handler that is
//	    registered says which scope it needs, and a key is in no log and no answer.
package web
