package etcd_test

import "bytes"

// seeds are the initial inputs of FuzzObserve, each with the tapes of three pods. Each pod is asked for its status
// first, and then for lists and hashes.
func seeds() [][3][]byte {
	all := func(tape ...byte) [3][]byte { return [3][]byte{tape, tape, tape} }
	// leads is a false status that names only a leader and a term.
	leads := func(leader, term byte) []byte { return []byte{falsely, leader, term} }
	negative := append([]byte{falsely, 1, 2, 0}, bytes.Repeat([]byte{255}, 40)...)
	large := append([]byte{falsely, 1, 2, 0, 127}, bytes.Repeat([]byte{255}, 39)...)
	hostile := []byte{12, 27, '[', '2', 'J', 0xe2, 0x80, 0xae, 'w', 0xff, 0xfe, '\n', 0}
	wordy := append(append(append([]byte{falsely, 1, 2, 0}, make([]byte, 40)...), hostile...), hostile...)
	return [][3][]byte{
		all(empty), all(honestly, empty), all(honestly, honestly, empty), all(honestly, honestly, honestly, empty),
		all(headless), all(honestly, headless), all(honestly, honestly, headless),
		all(atLength), all(honestly, atLength), all(honestly, honestly, honestly, atLength),
		all(slowly), all(honestly, slowly), {{}, {slowly}, {honestly, honestly, slowly}},
		all(inNumbers, 3), all(honestly, inNumbers, 1), all(honestly, inNumbers, 80), {{inNumbers, 2, 1}, {inNumbers, 2, 200}, {inNumbers, 2, 100}},
		all(asAnother, 0, 0), all(asAnother, 0xc1, 0), all(honestly, asAnother, 0xc2, 1), {{asAnother, 7, 1}, {asAnother, 8, 1}, {asAnother, 9, 1}},
		{leads(2, 5), leads(3, 5), leads(1, 5)}, // each reports the next one as the leader
		{leads(1, 1), leads(2, 2), leads(3, 3)}, // each reports itself as the leader
		{negative, large, wordy}, {wordy, negative, large}, {large, wordy, negative},
		all(honestly, falsely, 3, 0, 0, 0, 0, 0, 0), all(honestly, falsely, 2, 1, 0, 0, 0, 0, 0, 1), all(honestly, falsely, 0),
		all(honestly, falsely, 1, 1, 12, 27, '[', '2', 'J', 0xe2, 0x80, 0xae, 'w', 0xff, 0xfe, '\n', 0, 0, 0, 0, 0),
		all(refusing, 14, 3, 27, '[', 'J'), all(refusing, 8), all(refusing, 2), {{}, {}, {refusing, 2}}, all(honestly, refusing, 8, 2, 'n', 'o'), {{}, {honestly, honestly, refusing, 13, 1, 10}, {}},
		all(rawly, 4, 10, 2, 8, 1), all(rawly, 3, 255, 255, 255), all(honestly, rawly, 2, 18, 0),
	}
}
