package engine

// LoginRequest is a login attempt as LOGIN7 carries it.
type LoginRequest struct {
	User, Password    string
	Database          string // "" = the login's default
	HostName, AppName string
	ClientInterface   string
	Address           string
	Port              int
	Encrypted         bool
	ReadOnlyIntent    bool
	Admin             bool // dedicated administrator connection
}
