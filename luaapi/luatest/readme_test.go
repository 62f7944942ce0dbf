package luatest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/moongate/moongate/luaapi/luatest"
)

var luaBlock = regexp.MustCompile("(?s)```lua\n(.*?)```")

func TestTheExampleInTheReadmeWorks(t *testing.T) {
	text, err := os.ReadFile("../../scripts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := luaBlock.FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("the README has %d pieces of Lua, want a filter, the functions that work on chunks, and the filter's test", len(blocks))
	}
	runExample(t, string(blocks[0][1]), string(blocks[2][1]))
	runExample(t, `local M = { stage = "transform", config = { most = "integer" } }
`+string(blocks[1][1])+"return M", `test("caps and masks", function(t)
		t.config { most = 10 }
		t.answer { body = "card 1234-5678" }
		t.equal(t.request { method = "POST", body = "short" }.body, "card ****-****")
		t.equal(t.request { method = "POST", body = "longer than ten" }.status, 413)
	end)`)
}

func runExample(t *testing.T, script, test string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"example.lua": script, "example_test.lua": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := luatest.RunFile(filepath.Join(dir, "example_test.lua"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%d tests, %v", len(results), err)
	}
	if results[0].Err != nil {
		t.Error(results[0].Err)
	}
}

func TestAFailingTestSaysWhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.lua":      `return { stage = "transform", on_request = function(req) return gw.respond(418) end }`,
		"f_test.lua": "test('first', function(t)\n  t.equal(t.request({}).status, 200)\nend)\ntest('second', function(t)\n  t.equal(t.request({}).status, 418)\nend)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := luatest.RunFile(filepath.Join(dir, "f_test.lua"))
	if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err != nil {
		t.Fatalf("%+v, %v", results, err)
	}
	if want := "f_test.lua:2: got 418, want 200"; results[0].Err.Error() != want {
		t.Errorf("%v, want %s", results[0].Err, want)
	}
}
