package redisstore

import (
	"strconv"
	"strings"
	"sync"
)

// slotCount is how many slots a Cluster divides its keys into.
const slotCount = 16384

// slotOf returns the slot of a key: CRC-16/XMODEM of what stands between the
// first brace and the next closing one, or of the whole key, as the Cluster
// specification has it.
func slotOf(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if n := strings.IndexByte(key[i+1:], '}'); n > 0 {
			key = key[i+1 : i+1+n]
		}
	}
	return int(crc16(key)) % slotCount
}

func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// slotTags holds a short text for each slot, which as a key's tag leads there:
// so a sender's record can stand in the slot of what it is about.
var slotTags = sync.OnceValue(func() *[slotCount]string {
	var tags [slotCount]string
	for n, missing := uint64(0), slotCount; missing > 0; n++ {
		text := strconv.FormatUint(n, 36)
		if slot := crc16(text) % slotCount; tags[slot] == "" {
			tags[slot] = text
			missing--
		}
	}
	return &tags
})
