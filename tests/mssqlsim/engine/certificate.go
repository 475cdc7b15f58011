package engine

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// CreateMasterKey is CREATE MASTER KEY: 15578 exists already.
func (in *Instance) CreateMasterKey(now time.Time, id SessionID, password string) error {
	in.begin(now)
	if !in.masterControl(id) {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.srv.MasterKey != nil {
		return msg(15578, 16, 1, "There is already a master key in the database. Please drop it before performing this statement.")
	}
	if err := weakPassword(password); err != nil {
		return err
	}
	in.changeServer(func(st *ServerState) {
		st.MasterKey = &MasterKey{GUID: in.rnd.guid(), Created: in.wall(), Modified: in.wall()}
	})
	return nil
}

func (in *Instance) masterControl(id SessionID) bool {
	return in.dbCan(in.session(id), in.database(MasterID), "", "CONTROL")
}

// AlterMasterKey is ALTER MASTER KEY REGENERATE: 15581 without a key.
func (in *Instance) AlterMasterKey(now time.Time, id SessionID, password string) error {
	in.begin(now)
	if !in.masterControl(id) {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.srv.MasterKey == nil {
		return noMasterKey()
	}
	if err := weakPassword(password); err != nil {
		return err
	}
	in.changeServer(func(st *ServerState) {
		k := *st.MasterKey
		k.Modified = in.wall()
		st.MasterKey = &k
	})
	return nil
}

func noMasterKey() error {
	return msg(15581, 16, 3, "Please create a master key in the database or open the master key in the session before performing this operation.")
}

// DropMasterKey is DROP MASTER KEY: 15580 while private keys depend on it.
func (in *Instance) DropMasterKey(now time.Time, id SessionID) error {
	in.begin(now)
	if !in.masterControl(id) {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.srv.MasterKey == nil {
		return msg(15151, 16, 1, "Cannot find the symmetric key 'master key', because it does not exist or you do not have permission.")
	}
	for _, c := range in.srv.Certificates {
		if c.KeyType == "MK" {
			return msg(15580, 16, 1, "Cannot drop master key because certificate '%s' is encrypted by it.", c.Name)
		}
	}
	in.changeServer(func(st *ServerState) { st.MasterKey = nil })
	return nil
}

func (in *Instance) certificate(name string) *Certificate {
	for _, c := range in.srv.Certificates {
		if equalName(c.Name, name) {
			return c
		}
	}
	return nil
}

func (in *Instance) certificateByID(id int) *Certificate {
	for _, c := range in.srv.Certificates {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// CreateCertificate is CREATE CERTIFICATE: 15232 exists, 15581 no master key, 15468 bad content,
// 15151 unknown owner.
func (in *Instance) CreateCertificate(now time.Time, id SessionID, c CertificateSpec) error {
	in.begin(now)
	s := in.session(id)
	master := in.database(MasterID)
	if !in.dbCan(s, master, "", "CREATE CERTIFICATE") && !in.dbCan(s, master, "", "ALTER ANY CERTIFICATE") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.certificate(c.Name) != nil {
		return msg(15232, 16, 1, "A certificate with name '%s' already exists or this certificate already has been added to the database.", c.Name)
	}
	owner, _ := in.user(s, master)
	if c.Authorization != "" {
		u := in.view(s, master).principal(c.Authorization)
		if u == nil {
			return cannotFind("user", c.Authorization)
		}
		owner = u.ID
	}
	var pair KeyPair
	keyType := "NA"
	if len(c.DER) == 0 {
		t := CertTemplate{Subject: c.Subject, Start: in.wall().UTC().Truncate(time.Second)}
		set(&t.Start, c.Start)
		t.End = t.Start.AddDate(1, 0, 0)
		set(&t.End, c.Expiry)
		if !t.End.After(t.Start) {
			return msg(15213, 16, 1, "Warning: The certificate you created has an invalid validity period; its expiration date precedes its start date.")
		}
		copy(t.Serial[:], in.rnd.bytes(16))
		var seed [32]byte
		copy(seed[:], in.rnd.bytes(32))
		var err error
		if pair, err = in.cfg.Keys.Make(t, seed); err != nil {
			return msg(15297, 16, 56, "The certificate, asymmetric key, or private key data is invalid.")
		}
		keyType = "MK"
	} else {
		pair.DER = c.DER
		if len(c.PrivateKey) > 0 {
			p8, err := DecodePVK(c.PrivateKey, c.Password)
			if err != nil {
				return msg(15465, 16, 1, "The private key password is invalid.")
			}
			pair.PKCS8, keyType = p8, "MK"
		}
	}
	if keyType == "MK" {
		if c.EncryptBy != "" {
			keyType = "PW"
		} else if in.srv.MasterKey == nil {
			return noMasterKey()
		}
	}
	x, err := x509.ParseCertificate(pair.DER)
	if err != nil {
		return msg(15468, 16, 5, "An error occurred during the generation of the certificate.")
	}
	if len(pair.PKCS8) > 0 && !keyFits(x, pair.PKCS8) {
		return msg(15474, 16, 1, "Invalid private key. The private key does not match the public key of the certificate.")
	}
	sum := sha1.Sum(pair.DER)
	for _, o := range in.srv.Certificates {
		if bytes.Equal(o.Thumbprint, sum[:]) {
			return msg(15232, 16, 1, "A certificate with name '%s' already exists or this certificate already has been added to the database.", c.Name)
		}
	}
	n := &Certificate{Name: c.Name, Owner: owner, DER: bytes.Clone(pair.DER), Key: pair.PKCS8, KeyType: keyType,
		Subject: certName(x.Subject.String(), x.Subject.CommonName), Issuer: certName(x.Issuer.String(), x.Issuer.CommonName), Serial: serialText(x),
		Start: x.NotBefore.UTC(), End: x.NotAfter.UTC(), Thumbprint: sum[:]}
	if k, ok := x.PublicKey.(*rsa.PublicKey); ok {
		n.KeyLength = k.N.BitLen()
	} else {
		n.KeyLength = 256
	}
	in.changeServer(func(st *ServerState) {
		n.ID = st.NextCert
		st.NextCert++
		st.Certificates = append(st.Certificates, n)
	})
	return nil
}

// certName is the subject as the catalog shows it: the common name alone when there is no more.
func certName(full, cn string) string {
	if full == "CN="+cn {
		return cn
	}
	return full
}

func serialText(x *x509.Certificate) string {
	b := x.SerialNumber.Bytes()
	parts := make([]string, len(b))
	for i := range b {
		parts[i] = hex.EncodeToString(b[i : i+1])
	}
	return strings.Join(parts, " ")
}

func keyFits(x *x509.Certificate, pkcs8 []byte) bool {
	key, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return false
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k.PublicKey.Equal(x.PublicKey)
	case ed25519.PrivateKey:
		pub, ok := k.Public().(ed25519.PublicKey)
		return ok && pub.Equal(x.PublicKey)
	}
	return false
}

func (in *Instance) mayControlCertificate(s *session, c *Certificate) bool {
	master := in.database(MasterID)
	u, _ := in.user(s, master)
	return u == c.Owner || in.dbCan(s, master, "CERTIFICATE::"+foldName(c.Name), "CONTROL") || in.dbCan(s, master, "", "ALTER ANY CERTIFICATE")
}

// DropCertificate is DROP CERTIFICATE: 15151, 15352 in use by an endpoint or login.
func (in *Instance) DropCertificate(now time.Time, id SessionID, name string) error {
	in.begin(now)
	c := in.certificate(name)
	if c == nil || !in.mayControlCertificate(in.session(id), c) {
		return cannotFind("certificate", name)
	}
	used := in.srv.Endpoint != nil && in.srv.Endpoint.Certificate == c.ID
	for _, p := range in.srv.Principals {
		used = used || p.Certificate == c.ID
	}
	if used {
		return msg(15352, 16, 1, "The certificate cannot be dropped because one or more entities are either signed or encrypted using it.")
	}
	in.changeServer(func(st *ServerState) {
		st.Certificates = slices.DeleteFunc(st.Certificates, func(o *Certificate) bool { return o == c })
	})
	return nil
}

// CertificateID is CERT_ID.
func (in *Instance) CertificateID(name string) (int, bool) {
	if c := in.certificate(name); c != nil {
		return c.ID, true
	}
	return 0, false
}

// CertificateEncoded is CERTENCODED, which everybody may call: nil without certificate.
func (in *Instance) CertificateEncoded(_ SessionID, cert int) []byte {
	if c := in.certificateByID(cert); c != nil {
		return c.DER
	}
	return nil
}

func (in *Instance) maySeeCertificate(s *session, c *Certificate) bool {
	master := in.database(MasterID)
	return in.mayControlCertificate(s, c) || in.can(s, "VIEW ANY DEFINITION") ||
		in.dbCan(s, master, "CERTIFICATE::"+foldName(c.Name), "VIEW DEFINITION") || in.dbCan(s, master, "", "VIEW DEFINITION")
}

// CertificatePrivateKey is CERTPRIVATEKEY: the private key as PVK under password; nil without
// right, certificate or private key, or with a password against the policy.
func (in *Instance) CertificatePrivateKey(now time.Time, id SessionID, cert int, password string) []byte {
	in.begin(now)
	c := in.certificateByID(cert)
	if c == nil || len(c.Key) == 0 || weakPassword(password) != nil || !in.mayControlCertificate(in.session(id), c) {
		return nil
	}
	b, err := EncodePVK(c.Key, password, in.rnd.bytes(16))
	if err != nil {
		return nil
	}
	in.changeServer(func(st *ServerState) {
		for i, o := range st.Certificates {
			if o.ID == c.ID {
				n := *o
				n.KeyBackup = in.wall()
				st.Certificates[i] = &n
			}
		}
	})
	return b
}

// Certificates is sys.certificates.
func (in *Instance) Certificates(now time.Time, id SessionID) []CertificateRow {
	in.begin(now)
	s := in.session(id)
	desc := map[string]string{"NA": "NO_PRIVATE_KEY", "MK": "ENCRYPTED_BY_MASTER_KEY", "PW": "ENCRYPTED_BY_PASSWORD"}
	var l []CertificateRow
	for _, c := range in.srv.Certificates {
		if !in.maySeeCertificate(s, c) {
			continue
		}
		sid := append([]byte{1, 6, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0}, c.Thumbprint...)
		r := CertificateRow{Name: c.Name, ID: c.ID, PrincipalID: c.Owner, PrivateKeyType: c.KeyType, PrivateKeyTypeDesc: desc[c.KeyType],
			IsActiveForDialog: true, Issuer: c.Issuer, Subject: c.Subject, Serial: c.Serial, SID: sid,
			StringSID: "S-1-9-1-" + strings.ToUpper(hex.EncodeToString(c.Thumbprint)), StartDate: c.Start, Expiry: c.End,
			Thumbprint: c.Thumbprint, KeyLength: c.KeyLength}
		if !c.KeyBackup.IsZero() {
			r.LastKeyBackup = Some(c.KeyBackup)
		}
		l = append(l, r)
	}
	return l
}

// SymmetricKeys is sys.symmetric_keys.
func (in *Instance) SymmetricKeys(now time.Time, id SessionID) []SymmetricKeyRow {
	in.begin(now)
	k := in.srv.MasterKey
	if k == nil || !in.can(in.session(id), "VIEW ANY DEFINITION") && !in.masterControl(id) {
		return nil
	}
	return []SymmetricKeyRow{{Name: "##MS_DatabaseMasterKey##", ID: 101, PrincipalID: 1, KeyLength: 256, Algorithm: "A3", AlgoDesc: "AES_256",
		CreateDate: k.Created, ModifyDate: k.Modified, GUID: k.GUID}}
}
