// Package httplimit limits a net/http handler.
//
// A [Middleware] asks a limiter before each request reaches the handler. An
// allowed request goes on with RateLimit-Policy and RateLimit set on the
// response; a refused one is answered here and never reaches the handler:
//
//	429  a quota is exceeded; Retry-After says when the same request passes
//	503  the limiter cannot decide for now: nobody's fault, and not let through
//	400  the request does not say who it is from, or its target is no path
//	500  the limiter and its configuration contradict each other
//
// A refused client has a second to send what is left of its body, so that
// whoever withholds it cannot hold the answer and the connection.
//
// The handler gets the ResponseWriter of the server itself, so that streaming,
// hijacking and http.ResponseController work as without the middleware. The
// fields are set before the handler runs: what the handler sets itself wins.
// Where an outer limiter has set them already, the inner one appends to the
// same line.
//
// HEAD and OPTIONS are charged like any other method, or they would be a way
// around the limit. Put CORS handling outside of the middleware, so that pages
// can read its refusals and preflights that it answers cost nothing.
//
// The package keeps no budgets and proxies nothing.
package httplimit
