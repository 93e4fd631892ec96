// Judges registers with Porcupine: rows of "key write value call ret", numbers of 8 bytes, from a
// file; value -1 is a register that was never written, ret -1 an end that nobody knows.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

const columns = 5
const never = int64(1) << 60

type access struct {
	key     int64
	isWrite bool
	value   int64
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int64][]porcupine.Operation{}
		for _, each := range history {
			key := each.Input.(access).key
			parts[key] = append(parts[key], each)
		}
		found := make([][]porcupine.Operation, 0, len(parts))
		for _, part := range parts {
			found = append(found, part)
		}
		return found
	},
	Init: func() interface{} { return int64(-1) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		asked := input.(access)
		if asked.isWrite {
			return true, asked.value
		}
		return output.(int64) == state.(int64), state
	},
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	bytes, err := io.ReadAll(file)
	if err != nil {
		panic(err)
	}
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	history := make([]porcupine.Operation, 0, len(bytes)/8/columns)
	for at := 0; at < len(bytes); at += 8 * columns {
		var row [columns]int64
		for column := range row {
			row[column] = int64(binary.LittleEndian.Uint64(bytes[at+8*column:]))
		}
		if row[4] < 0 {
			row[4] = never
		}
		history = append(history, porcupine.Operation{
			Input:  access{row[0], row[1] == 1, row[2]},
			Output: row[2], Call: row[3], Return: row[4],
		})
	}
	begun := time.Now()
	result := porcupine.CheckOperationsTimeout(model, history, time.Duration(seconds)*time.Second)
	fmt.Println(result, time.Since(begun).Seconds())
}
