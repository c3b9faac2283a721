package option

import "schedrestd/internal/feature"

// RequestedAuth returns the requested authentication methods: those that -a
// lists, or all.
func (o *Options) RequestedAuth() (feature.Auth, error) {
	if o.Auth.Origin == "" {
		return feature.Local | feature.JWT, nil
	}
	return feature.ParseAuth(o.Auth.Origin, o.Auth.Value)
}

// RequestedVersions returns the requested API versions: those that -d lists, or
// all.
func (o *Options) RequestedVersions() ([]feature.Parser, error) {
	if o.Parsers.Origin == "" {
		return feature.AllParsers(), nil
	}
	return feature.ParseParsers(o.Parsers.Origin, o.Parsers.Value)
}

// RequestedContent returns the requested content plugins: those that -s lists,
// or all.
func (o *Options) RequestedContent() (feature.Content, error) {
	if o.Content.Origin == "" {
		return feature.AllContent, nil
	}
	return feature.ParseContent(o.Content.Origin, o.Content.Value)
}
