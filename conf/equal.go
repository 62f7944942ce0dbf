package conf

import (
	"reflect"
	"time"
)

var (
	posType   = reflect.TypeFor[Pos]()
	timeType  = reflect.TypeFor[time.Time]()
	tableType = reflect.TypeFor[*Table]()
)

// same compares two values of one type by all that they say; where they stand does not count, nor whether an empty list
// was written or left away.
func same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	switch a.Type() {
	case posType:
		return true
	case timeType:
		return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
	case tableType:
		return a.Interface().(*Table).Equal(b.Interface().(*Table))
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Pointer() == b.Pointer() || sameValue(a.Elem(), b.Elem())
	case reflect.Struct:
		if a.Comparable() && a.Equal(b) {
			return true
		}
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for entries := a.MapRange(); entries.Next(); {
			other := b.MapIndex(entries.Key())
			if !other.IsValid() || !sameValue(entries.Value(), other) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
