package redis

import (
	"math"
	"strconv"

	"github.com/redis/rueidis"
)

// Kind is what an answer is.
type Kind uint8

// The kinds of answers. Sets are lists; a map is a list of keys and values in turn.
const (
	Nil Kind = iota
	Int
	Text
	Bool
	Double
	List
	Map
	Failure // within a list: an error
)

// Value is what Redis answered.
type Value struct {
	Kind  Kind
	Int   int64   // of Int; of Bool 0 or 1
	Text  string  // of Text and Failure
	Float float64 // of Double
	List  []Value // of List and Map

	numbers []int64 // of a List of RunNumbers
}

// Number is the answer as a whole number: an Int, or a Text that is one.
func (v Value) Number() (n int64, ok bool) {
	switch v.Kind {
	case Int, Bool:
		return v.Int, true
	case Double:
		return int64(v.Float), v.Float == math.Trunc(v.Float) && math.Abs(v.Float) < 1<<53
	case Text:
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// answer takes an answer over from the driver.
func answer(r rueidis.RedisResult) (Value, error) {
	m, err := r.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		return Value{}, nil
	case err != nil:
		return Value{}, failure(err)
	}
	return convert(&m), nil
}

// answerNumbers takes a list of whole numbers over from the driver.
func answerNumbers(r rueidis.RedisResult) (Value, error) {
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		return Value{}, failure(err)
	}
	numbers, _ := r.AsIntSlice() // another answer is none
	return Value{Kind: List, numbers: numbers}, nil
}

func convert(m *rueidis.RedisMessage) (v Value) {
	switch {
	case m.IsNil():
	case m.IsInt64():
		v.Kind = Int
		v.Int, _ = m.ToInt64()
	case m.IsBool():
		v.Kind = Bool
		if is, _ := m.ToBool(); is {
			v.Int = 1
		}
	case m.IsFloat64():
		v.Kind = Double
		v.Float, _ = m.ToFloat64()
	case m.IsArray(), m.IsMap():
		v = convertList(m)
	default:
		if err := m.Error(); err != nil {
			return Value{Kind: Failure, Text: err.Error()}
		}
		v.Kind = Text
		v.Text, _ = m.ToString()
	}
	return v
}

func convertList(m *rueidis.RedisMessage) Value {
	if m.IsMap() {
		v := Value{Kind: Map}
		entries, _ := m.ToMap()
		for key, value := range entries {
			v.List = append(v.List, Value{Kind: Text, Text: key}, convert(&value))
		}
		return v
	}
	items, _ := m.ToArray()
	v := Value{Kind: List, List: make([]Value, len(items))}
	for i := range items {
		v.List[i] = convert(&items[i])
	}
	return v
}
