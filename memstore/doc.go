// Package memstore keeps budgets in the memory of one process.
//
// It is exact, and fast: a decision on one counter costs a hash, a mutex that
// few share and no allocation. It starts no goroutine, reads no clock and
// needs no closing. Use it for a single process, for tests, and as the measure
// that other stores are compared with.
//
// It is not for several processes that must share a budget: each would grant
// the whole of it. Nor does it outlive its process: a restart hands every
// caller a fresh budget. Package redisstore does both.
//
// # Memory
//
// A counter of a policy with one limit costs about 90 bytes, whatever its
// limit and its window. A counter that still matters is never dropped to make
// room: when [Config].MaxSubjects counters are held and none of them has
// expired, a new one is refused with [stint.AdmissionRejected]. Expired
// counters leave a few at a time, whenever new ones arrive.
//
// # Time
//
// Time is Group.Now, and nothing else: a counter expires when a later call says
// that it is late enough. Group.Deadline and the context are not looked at,
// since nothing here waits for longer than another decision takes.
package memstore
