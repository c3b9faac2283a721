package auth

import "schedrestd/auth/jose"

// object is a JSON object with unparsed members.
type object jose.Object

func parseObject(data []byte) (object, error) {
	o, err := jose.ParseObject(data)
	return object(o), err
}

func (o object) text(name string) (value string, ok bool, err error) {
	return jose.Object(o).Text(name)
}

func (o object) seconds(name string) (value int64, ok bool, err error) {
	return jose.Object(o).Seconds(name)
}
