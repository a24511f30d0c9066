// Package bench measures what stint promises about speed and size, beside
// what others do, on one machine and in one run.
//
// Contestants take turns, several rounds of each, and a figure is the median
// of its rounds: so a machine that is busy for a moment slows everybody. Only
// ratios mean anything on another machine. Command figures prints the tables;
// the tests here run every measurement once, small, so that they keep working.
//
// It is a module of its own: competitors are no dependency of stint.
package bench
