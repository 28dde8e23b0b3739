package queries

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"tidemark/windows"
)

// ItemsAnswer is items that are known, in byte order.
type ItemsAnswer struct {
	Prefix string      `json:"prefix"`
	Items  []KnownItem `json:"items"`
	More   bool        `json:"more"` // there are further ones
}

// KnownItem is an item with what was said of it last.
type KnownItem struct {
	Item string `json:"item"`
	Texts
}

// Items lists the items that begin with a prefix.
func (e *Engine) Items(ctx context.Context, q ItemsQuestion) (answer *ItemsAnswer, err error) {
	v, err := e.open(ctx, everyItem)
	if err != nil {
		return nil, err
	}
	defer v.close(&err)
	names := make(map[string]bool)
	for _, f := range v.live {
		for _, s := range f.series {
			for _, name := range s.names {
				if name != "" && strings.HasPrefix(name, q.Prefix) { // "" is the site
					names[name] = true
				}
			}
		}
	}
	stored := 0 // one more than is listed tells that there are more
	err = v.snap.Items(q.Prefix, func(_ uint32, name string) bool {
		names[name] = true
		stored++
		return stored <= q.Limit && ctx.Err() == nil
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(names))
	answer = &ItemsAnswer{Prefix: q.Prefix, Items: []KnownItem{}, More: len(all) > q.Limit}
	for _, name := range all[:min(len(all), q.Limit)] {
		texts, err := v.texts(name)
		if err != nil {
			return nil, err
		}
		answer.Items = append(answer.Items, KnownItem{name, texts})
	}
	return answer, nil
}

// texts returns what was said of an item last.
func (v *view) texts(item string) (Texts, error) {
	id, err := v.id(key{kind: windows.Item, item: item})
	if err != nil || !id.stored {
		return Texts{}, err
	}
	t, err := v.snap.Texts(id.id)
	return Texts{Title: t.Title.Value, URL: t.URL.Value, Image: t.Image.Value}, err
}
