package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/stintlimit/stint"
)

// The scripts, assembled from one file an idea. They start with a shebang, so
// that the server refuses a write it cannot make before the script has begun.
var (
	//go:embed lua/session.lua
	luaSession string
	//go:embed lua/fixed_window.lua
	luaFixedWindow string
	//go:embed lua/sliding_counter.lua
	luaSlidingCounter string
	//go:embed lua/token_bucket.lua
	luaTokenBucket string
	//go:embed lua/refund.lua
	luaRefund string
	//go:embed lua/single.lua
	luaSingle string
	//go:embed lua/group.lua
	luaGroup string
)

// script is a Lua program and the name that the server knows it by.
type script struct {
	source string
	sha    string
}

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// scripts holds the tight script of each algorithm, for policies of one limit,
// and the general one.
type scripts struct {
	single [stint.AlgorithmTokenBucket + 1]script
	group  script
}

func newScripts() *scripts {
	algorithms := map[stint.Algorithm]string{
		stint.AlgorithmFixedWindow:    luaFixedWindow,
		stint.AlgorithmSlidingCounter: luaSlidingCounter,
		stint.AlgorithmTokenBucket:    luaTokenBucket,
	}
	const head = "#!lua\n"
	s := &scripts{}
	table := "local algorithms = {}\n"
	for a := stint.AlgorithmFixedWindow; a <= stint.AlgorithmTokenBucket; a++ {
		call := "(function()\n" + algorithms[a] + "end)()\n"
		s.single[a] = newScript(head + luaSession + "local advance, free, wait, forget = " + call + luaSingle)
		table += "algorithms[" + string('0'+rune(a)) + "] = {" + call + "}\n"
	}
	table += "local refunds = (function()\n" + luaRefund + "end)()\n"
	s.group = newScript(head + luaSession + table + luaGroup)
	return s
}
