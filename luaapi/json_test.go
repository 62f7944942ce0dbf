package luaapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moongate/moongate/luaapi/luatest"
)

// echo is a filter that decodes the body, sets one field where it can, and encodes it again.
const echo = `local doc, err = req:json()
	if err then return gw.respond(200, err, { ["Content-Type"] = "text/error" }) end
	if type(doc) == "table" and req.headers["X-Add"] then doc.x = 1 end
	req:set_body(gw.json.encode(doc))`

// patient lets a slow machine finish, and wait for a VM.
const patient = "[scripts]\nbudget = \"10s\"\nwait = \"1m\"\n"

func recode(t testing.TB, b *luatest.Bench, text string, headers [][2]string) (body, fault string) {
	t.Helper()
	b.Upstream = func(f luatest.Forwarded) luatest.Answer { body = f.Body; return luatest.Answer{Status: 200} }
	a := b.Do(luatest.Request{Method: "POST", Body: text, Headers: headers})
	if a.Err != nil {
		t.Fatalf("%q: %v", text, a.Err)
	}
	return body, a.Body
}

func TestJSONKeepsShapesAndDigits(t *testing.T) {
	b := bench(t, patient, onRequest(echo))
	for text, want := range map[string]string{
		`{"items":[],"props":{},"list":[1,null,3],"n":null}`: `{"items":[],"props":{},"list":[1,null,3],"n":null,"x":1}`,
		`{"id":9007199254740993,"big":12345678901234567890}`: `{"id":9007199254740993,"big":12345678901234567890,"x":1}`,
		`{"p":123456789012345.678,"e":1E400,"t":1e-400}`:     `{"p":123456789012345.678,"e":1E400,"t":1e-400,"x":1}`,
		`{"a":1.10,"b":-0.5,"c":1e3,"d":1e21,"f":5e-324}`:    `{"a":1.1,"b":-0.5,"c":1000,"d":1e+21,"f":` + tiny + `,"x":1}`,
		`{"s":"\u00e9\ud83d\ude00\n\"\\\/","t":"é😀"}`:        `{"s":"é😀\n\"\\/","t":"é😀","x":1}`,
		` { "a" : 1 , "b" : [ true , false ] } `:             `{"a":1,"b":[true,false],"x":1}`,
		`{"a":1,"b":2,"a":3}`:                                `{"a":3,"b":2,"x":1}`,
		`{"":0}`:                                             `{"":0,"x":1}`,
	} {
		if got, fault := recode(t, b, text, lines("X-Add", "1")); got != want {
			t.Errorf("%s\ngot  %s %s\nwant %s", text, got, fault, want)
		}
	}
}

var tiny = func() string {
	text := "0." + strings.Repeat("0", 323) + "5"
	return text
}()

// TestObjectsWithTheSameMembersShareNothing: tables of one kind are made from a common plan.
func TestObjectsWithTheSameMembersShareNothing(t *testing.T) {
	holds(t, `
		local list = req:json()
		list[1].new, list[2].name, list[3].other = 1, nil, 2
		list[3].new, list[4][1] = 3, nil
		assert(gw.json.encode(list[1]) == '{"id":1,"name":"a","new":1}', gw.json.encode(list[1]))
		assert(gw.json.encode(list[2]) == '{"id":2}')
		assert(gw.json.encode(list[3]) == '{"id":3,"name":"c","other":2,"new":3}')
		assert(gw.json.encode(list[4]) == '{"id":4,"name":"d"}')
		assert(gw.json.encode(list[5]) == '{"id":6,"name":"e"}', "the last of two members counts")
		assert(list[6].name == nil and gw.json.encode(list[6]) == "{}")
		assert(gw.json.encode(gw.json.decode(req:body())[1]) == '{"id":1,"name":"a"}')
	`, luatest.Request{Body: `[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"},{"id":4,"name":"d"},{"id":5,"name":"e","id":6},{}]`})
}

func TestWhatIsNoJSONIsToldWithItsPlace(t *testing.T) {
	b := bench(t, patient, onRequest(echo))
	for _, text := range []string{"", "{", "[1,]", `{"a"}`, `{"a":1,}`, `{a:1}`, `"\x"`, `"\ud800"`, `"\ud800\u0041"`, "\"a\x01\"", "\"\xff\"", "01", "1.", "-", "1e", "+1",
		"nul", "[1] x", "NaN", "'a'", strings.Repeat("[", 101) + strings.Repeat("]", 101), "[" + strings.Repeat("1,", 65535) + "1]"} {
		if _, fault := recode(t, b, text, nil); !strings.HasPrefix(fault, "not JSON: ") || !strings.Contains(fault, " at byte ") {
			t.Errorf("%.40q: %q", text, fault)
		}
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	if got, fault := recode(t, b, deep, nil); got != deep {
		t.Errorf("100 levels: %s", fault)
	}
}

func TestNumbersThatLuaCannotHoldAreUsedAsNumbers(t *testing.T) {
	holds(t, `
		local doc = req:json()
		assert(tostring(doc.id) == "9007199254740993" and "id " .. doc.id == "id 9007199254740993")
		assert(doc.id + 1 == 2 ^ 53 and doc.id > gw.json.decode("9007199254740995") == false and doc.id == gw.json.decode("9007199254740993"))
		req.headers["X-Id"] = doc.id
		assert(req.headers["X-Id"] == "9007199254740993")
		ctx.id = doc.id
		assert(tostring(ctx.id) == "9007199254740993" and tostring(gw.json.null) == "null")
	`, luatest.Request{Body: `{"id":9007199254740993}`})
}

func TestOneValueIsFoundWithoutTheRest(t *testing.T) {
	body := `{"a":{"b":[10,{"c":"x"}],"d.e":1},"n":null,"a":{"b":[20,{"c":"last"}],"d.e":2},"t":true}`
	for path, want := range map[string]string{
		"a.b.0": "20", "a.b.1.c": `"last"`, `a.d\\.e`: "2", "n": "nil", "t": "true", "missing": "nil", "a.b.9": "nil", "a.b.x": "nil", "t.x": "nil", "a.b.-1": "nil", "": "nil",
	} {
		holds(t, `local v, err = req:json_get("`+path+`"); assert(v == `+want+` and err == nil, tostring(v) .. tostring(err))`, luatest.Request{Body: body})
	}
	holds(t, `local v = req:json_get("a"); assert(v.b[2].c == "last")
		local none, err = gw.json.get('{"a":1', "a"); assert(none == nil and err:find("not JSON"))
		none, err = gw.json.get("", "a"); assert(none == nil and err:find("not JSON"))`, luatest.Request{Body: body})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,"x",null,true,{}]}`, `"\ud83d\ude00"`, `[[],{}]`, `-0`, `1e5`, "{\"a\":\"\xff\"}", `[1,]`, `{"a":1,"a":2}`, `[{"a":[{}, [ ]]},{"a":0.1E-2}]`,
		`[{"id":1,"name":"x"},{"id":2,"name":"y"},{"id":3,"name":"z"}]`} {
		f.Add(seed)
	}
	b := bench(f, patient, onRequest(echo))
	passing := bench(f, patient, onRequest(`local _, err = req:json_get("nowhere at all.x")
	if err then return gw.respond(200, err, { ["Content-Type"] = "text/error" }) end`))
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || text == "" {
			return
		}
		got, fault := recode(t, b, text, nil)
		if _, passed := recode(t, passing, text, nil); passed != fault && !strings.Contains(fault, "65535") {
			t.Fatalf("%q: %q when decoded, %q when passed over", text, fault, passed)
		}
		if fault != "" {
			return // stricter than encoding/json: lone surrogates, depth, UTF-8
		}
		var want, have any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			if number(text) {
				return // encoding/json refuses numbers beyond a float
			}
			t.Fatalf("%q was accepted: %v", text, err)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q became %q, which is no UTF-8", text, got)
		}
		if err := json.Unmarshal([]byte(got), &have); err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("%q became %q (%v)", text, got, err)
		}
	})
}

func number(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	return d.Decode(&v) == nil
}

// TestFindingSeesTheSameFaultsAsDecoding: what a path does not lead to is passed over by code of its own, which must be as strict; also when it
// has learned what names come, in texts before and in this one.
func TestFindingSeesTheSameFaultsAsDecoding(t *testing.T) {
	seeds := []string{`{"a":[1,-2.5e3,"x\u00e9\n",null,true,{"b":{}, "c" : [ ],"d":[[{}],{"e":[]}]} , 0.10E+2],"long text of many bytes":"é plain and long enough \" to matter","n":0}`,
		`[{"id":12345678,"name":"x","of":{"a":1}},{"id":123456789,"name":"y","of":{"a":0.12345678}}, {"id":1,"name":"z","of":{"a":2}},{"id":1,"sixteen bytes":1}]`,
		"[{\"id\": 7,\n  \"name\": \"x\"},\n {\"id\": 70,\n  \"name\": \"y\"}, {\"id\": 70,\n  \"name\": \"y\"}]"}
	const odd = " \"\\{}[],:0123456789-+.eEtfn\x00\x1f\x80\xff"
	r := rand.New(rand.NewPCG(3, 4))
	b := bench(t, patient, onRequest(`local _, decoded = gw.json.decode(req:body())
		local _, found = gw.json.get(req:body(), "nowhere")
		assert(decoded == found, tostring(decoded) .. " / " .. tostring(found))`))
	for n := range 9000 {
		text := []byte(seeds[n%len(seeds)])
		for range 1 + r.IntN(3) {
			if len(text) == 0 {
				break
			}
			i := r.IntN(len(text))
			switch r.IntN(4) {
			case 0:
				text[i] = odd[r.IntN(len(odd))]
			case 3:
				text = slices.Insert(text, i, odd[r.IntN(len(odd))])
			case 1:
				text = append(text[:i], text[i+1:]...)
			default:
				text = text[:i+1]
			}
		}
		if a := b.Do(luatest.Request{Method: "POST", Body: string(text)}); a.Err != nil && len(text) > 0 {
			t.Fatalf("%q: %v", text, a.Err)
		}
	}
}
