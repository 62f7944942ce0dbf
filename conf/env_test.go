package conf_test

import (
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
)

// envWorld has a few variables set.
func envWorld(text string) conf.Options {
	o := world("x", text)
	vars := map[string]string{
		"A": "a", "EMPTY": "", "PORT": "7000", "HUGE": "9223372036854775807", "N": "20", "YES": "true",
		"TOML": "\"\n[admin]\ntoken = \"x", "REF": "${A}",
	}
	o.Env = func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
	return o
}

func TestReferencesInStrings(t *testing.T) {
	for text, want := range map[string]string{
		"plain":              "plain",
		"$":                  "$",
		"$A and $ {A}":       "$A and $ {A}",
		"cost: 5$":           "cost: 5$",
		"${A}":               "a",
		"x${A}y${A}z":        "xayaz",
		"${EMPTY}":           "",
		"${EMPTY:-d}":        "",
		"${NO:-}":            "",
		"${NO:-d}":           "d",
		"${NO:-a b=c}":       "a b=c",
		"${NO:-${A}}":        "${A}",
		"${NO:-{x}}y":        "{x}y",
		"${NO:-${A:-x}}":     "${A:-x}",
		"$${A}":              "${A}",
		"$${":                "${",
		"$${A}${A}":          "${A}a",
		"$1 ${1} ${12}":      "$1 ${1} ${12}",
		"${REF}":             "${A}",
		"${TOML}":            "\"\n[admin]\ntoken = \"x",
		"${PORT+1}":          "7001",
		"${PORT:-9000+1}":    "7001",
		"${NO:-9000+1}":      "9001",
		"${NO:-9000+0}":      "9000",
		"${NO:-UTC+1}":       "UTC+1",
		"${NO:-9000+1+1}":    "9000+1+1",
		"${NO:-9000+}":       "9000+",
		"${NO:-+1}":          "+1",
		":${PORT+10}/${N+5}": ":7010/25",
	} {
		quoted := strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(text)
		c, err := conf.Load("x", envWorld(oneRoute+"[filter.jwt]\nvalue = \""+quoted+"\"\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v, _ := c.Filter("jwt").Settings.Get("value")
		if v.V != want {
			t.Errorf("%s gives %q, want %q", text, v.V, want)
		}
	}
}

func TestBrokenReferencesNameVariableAndPlace(t *testing.T) {
	for text, want := range map[string]string{
		"${NO}":             "the environment variable NO is not set: set it or write ${NO:-default}",
		"${A":               "${A has no closing brace",
		"${A:-{}":           "${A:-{} has no closing brace",
		"${}":               "${} is no reference",
		"${:-x}":            "${:-x} names no variable",
		"${ A }":            "${ A } is no reference",
		"${A-b}":            "${A-b} is no reference",
		"${A:b}":            "${A:b} is no reference",
		"${A.B}":            "${A.B} is no reference",
		"${A+1}":            "the environment variable A is no whole number, so 1 cannot be added to it",
		"${A:-9000+1}":      "the environment variable A is no whole number, so 1 cannot be added to it",
		"${EMPTY:-9000+1}":  "the environment variable EMPTY is no whole number",
		"${HUGE+1}":         "the environment variable HUGE is no whole number",
		"${NO+1}":           "the environment variable NO is not set",
		"${A+b}":            "${A+b} is no reference",
		"ok ${A} then ${NO": "${NO has no closing brace",
	} {
		_, err := conf.Load("x", envWorld(oneRoute+"[filter.jwt]\n\nvalue = [\n  \""+text+"\",\n]\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "x:7: filter.jwt.value[0]: "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestReferencesMayStandForNumbersAndBooleans(t *testing.T) {
	c, err := conf.Load("x", envWorld(oneRoute+`
[scripts]
vms = "${N}"
budget = "${N}ms"
[filter.jwt]
enabled = "${YES}"
[limiter.a]
rate = "${N}"
burst = "${N}"
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Scripts.VMs != 20 || !c.Filter("jwt").Enabled || c.Limiter("a").Rate.Count != 20 || c.Limiter("a").Burst != 20 {
		t.Errorf("%+v", c)
	}
	if _, err := conf.Load("x", envWorld(oneRoute+"[scripts]\nvms = \"20\"\n")); err == nil {
		t.Error("a string that was written stands for a number")
	}
}

func TestKeysAndNumbersHaveNoReferences(t *testing.T) {
	if err := refused(t, oneRoute+"[filter.jwt]\nvalue = ${A}\n"); !strings.Contains(err.Error(), "x:5: the TOML is wrong") {
		t.Error(err)
	}
	c := load(t, oneRoute+"[filter.jwt]\n\"${A}\" = 1\n")
	if _, ok := c.Filter("jwt").Settings.Get("${A}"); !ok {
		t.Error("a key was expanded")
	}
}

func TestScriptsEnvironmentIsTakenAtLoad(t *testing.T) {
	c, err := conf.Load("x", envWorld(oneRoute+"[scripts]\nenv = [\"A\", \"EMPTY\", \"NO\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, set := c.Scripts.EnvValues["NO"]
	if c.Scripts.EnvValues["A"] != "a" || len(c.Scripts.EnvValues) != 2 || set {
		t.Errorf("%d values", len(c.Scripts.EnvValues))
	}
}
