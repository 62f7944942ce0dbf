package conf_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/conf/source"
)

// secretWorld has files beside the configuration, which stands in a folder of its own.
func secretWorld(text string) conf.Options {
	return conf.Options{
		Files: source.Map(map[string]string{
			"etc/x":               oneRoute + text,
			"etc/scripts/jwt.lua": "return {}",
			"etc/secrets/one":     "s3cr3t-of-the-file\n",
			"etc/secrets/crlf":    "two\r\n",
			"etc/secrets/bare":    "three",
			"etc/secrets/many":    "a\nb\n\n",
			"etc/secrets/refs":    "${A}\"\n[admin]",
			"/abs/number":         "20\n",
		}),
		Env: func(name string) (string, bool) { return "d", name == "file" },
	}
}

func TestStringsMayReferToFiles(t *testing.T) {
	for text, want := range map[string]string{
		"${file:secrets/one}":                      "s3cr3t-of-the-file",
		"${file:./secrets/crlf}":                   "two",
		"<${file:secrets/bare}>":                   "<three>",
		"${file:secrets/many}":                     "a\nb\n",
		"${file:secrets/refs}":                     "${A}\"\n[admin]",
		"${file:/abs/number}":                      "20",
		"${file:secrets/bare}${file:secrets/bare}": "threethree",
		"${file:-x}":                               "d", // the variable called file
		"$${file:secrets/one}":                     "${file:secrets/one}",
	} {
		c, err := conf.Load("etc/x", secretWorld("[filter.jwt]\nvalue = \""+text+"\"\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		v, _ := c.Filter("jwt").Settings.Get("value")
		if v.V != want {
			t.Errorf("%s gives %q, want %q", text, v.V, want)
		}
	}
	c, err := conf.Load("etc/x", secretWorld("[scripts]\nvms = \"${file:/abs/number}\"\n"))
	if err != nil || c.Scripts.VMs != 20 {
		t.Errorf("a number from a file: %v", err)
	}
}

func TestWhatCannotBeReadIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"${file:secrets/none}": "etc/x:5: filter.jwt.value: cannot read etc/secrets/none: file does not exist",
		"${file:}":             "etc/x:5: filter.jwt.value: ${file:} names no file: write ${file:secrets/jwt}",
		"${file:secrets/one":   "etc/x:5: filter.jwt.value: ${file:secrets/one has no closing brace",
	} {
		_, err := conf.Load("etc/x", secretWorld("[filter.jwt]\nvalue = \""+text+"\"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestTextsOfFilesAreNeverShown looks at every way in which a configuration is printed.
func TestTextsOfFilesAreNeverShown(t *testing.T) {
	before, err := conf.Load("etc/x", secretWorld("[filter.jwt]\nvalue = \"${file:secrets/bare}\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := conf.Load("etc/x", secretWorld("[filter.jwt]\nvalue = \"${file:secrets/one}\"\n[admin]\ntoken = \"${file:secrets/one}\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	dump, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	diff := fmt.Sprint(conf.Diff(before, c))
	if !strings.Contains(diff, "filter.jwt.value") {
		t.Errorf("the change is not told: %s", diff)
	}
	for _, text := range []string{string(dump), diff, fmt.Sprintf("%v %+v %#v", c, c, c), fmt.Sprintf("%+v", c.Filter("jwt").Settings)} {
		if strings.Contains(text, "s3cr3t") || strings.Contains(text, "three") {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	if !slices.Contains(c.Sources, "etc/secrets/one") {
		t.Errorf("the file is not watched: %v", c.Sources)
	}
}
