// Package docs holds the documentation to what it says: its tests run the
// commands, check the configurations, compile the Go and compare the answers
// that the pages show.
//
// It has no code for users. A page's blocks are tested by their language:
//
//   - sh: commands, run in order, in one folder for each page, against servers
//     that the test starts on free ports. `stint serve` and `redis-server` run
//     in the background until the page ends, or until the next one of them.
//   - http, text: what the commands before it answered, or a part of that.
//   - yaml: a configuration for `stint check`. A part of one is completed.
//   - go: a program, or statements, that compile.
//   - json: well-formed.
//   - acl: a rule that Redis accepts for a user.
//
// A comment before a block tells the test more. Either names the file that the
// block is, for the commands after it; or says why it is not run:
//
//	<!-- file: limits.yaml -->
//	<!-- not run: it needs two machines -->
//
// Any other block fails the test.
package docs
