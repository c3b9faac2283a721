package privsep

// CheckListen tells what is wrong with LISTEN arguments. It resolves no name and opens nothing: a
// command can refuse its line before it does any work.
func CheckListen(list []string) error {
	for _, text := range list {
		if _, err := parseEndpoint(text); err != nil {
			return err
		}
	}
	return nil
}
