package engine

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rc4"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// The PVK container of BACKUP CERTIFICATE and CERTPRIVATEKEY: a 24-byte header, a salt and a
// PRIVATEKEYBLOB that is RC4-encrypted, from its key material on, under SHA-1(salt + password). RSA
// keys are in Microsoft's form. Ed25519 keys, which the product does not have, carry their seed in
// a blob with a magic of our own.
const (
	pvkMagic     = 0xb0b5f11e
	rsaBlobMagic = 0x32415352 // RSA2
	edBlobMagic  = 0x35324445 // ED25, ours
	blobHeader   = 8
)

// EncodePVK wraps a PKCS #8 key under a password; salt is 16 random bytes.
func EncodePVK(pkcs8 []byte, password string, salt []byte) ([]byte, error) {
	key, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, fmt.Errorf("read the private key: %w", err)
	}
	blob := []byte{7, 2, 0, 0, 0, 0xa4, 0, 0} // PRIVATEKEYBLOB, version 2, CALG_RSA_KEYX
	switch k := key.(type) {
	case *rsa.PrivateKey:
		n := (k.N.BitLen() + 15) / 16 * 2
		blob = binary.LittleEndian.AppendUint32(blob, rsaBlobMagic)
		blob = binary.LittleEndian.AppendUint32(blob, uint32(n*8))
		blob = binary.LittleEndian.AppendUint32(blob, uint32(k.E))
		blob = appendLE(blob, k.N, n)
		blob = appendLE(blob, k.Primes[0], n/2)
		blob = appendLE(blob, k.Primes[1], n/2)
		blob = appendLE(blob, k.Precomputed.Dp, n/2)
		blob = appendLE(blob, k.Precomputed.Dq, n/2)
		blob = appendLE(blob, k.Precomputed.Qinv, n/2)
		blob = appendLE(blob, k.D, n)
	case ed25519.PrivateKey:
		blob = binary.LittleEndian.AppendUint32(blob, edBlobMagic)
		blob = append(blob, k.Seed()...)
	default:
		return nil, fmt.Errorf("a key of type %T has no PVK form: use RSA", key)
	}
	b := binary.LittleEndian.AppendUint32(nil, pvkMagic)
	for _, v := range []uint32{0, 1, 1, uint32(len(salt)), uint32(len(blob))} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, salt...)
	crypt(blob[blobHeader:], salt, password)
	return append(b, blob...), nil
}

func appendLE(b []byte, n *big.Int, size int) []byte {
	p := n.FillBytes(make([]byte, size))
	slices.Reverse(p)
	return append(b, p...)
}

func crypt(b, salt []byte, password string) {
	h := sha1.Sum(append(append([]byte(nil), salt...), password...))
	c, err := rc4.NewCipher(h[:16])
	if err == nil {
		c.XORKeyStream(b, b)
	}
}

// DecodePVK unwraps a PVK container to PKCS #8; password is ignored for an unencrypted one.
func DecodePVK(pvk []byte, password string) ([]byte, error) {
	bad := errors.New("not a PVK private key, or the password is wrong")
	if len(pvk) < 24 || binary.LittleEndian.Uint32(pvk) != pvkMagic {
		return nil, bad
	}
	encrypted := binary.LittleEndian.Uint32(pvk[12:]) != 0
	saltLen, keyLen := int(binary.LittleEndian.Uint32(pvk[16:])), int(binary.LittleEndian.Uint32(pvk[20:]))
	if saltLen < 0 || saltLen > 1024 || keyLen < blobHeader+4 || keyLen > 1<<16 || len(pvk) < 24+saltLen+keyLen {
		return nil, bad
	}
	salt := pvk[24 : 24+saltLen]
	blob := bytes.Clone(pvk[24+saltLen : 24+saltLen+keyLen])
	if encrypted {
		crypt(blob[blobHeader:], salt, password)
	}
	body := blob[blobHeader:]
	switch binary.LittleEndian.Uint32(body) {
	case edBlobMagic:
		if len(body) < 4+ed25519.SeedSize {
			return nil, bad
		}
		return x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(body[4 : 4+ed25519.SeedSize]))
	case rsaBlobMagic:
	default:
		return nil, bad
	}
	if len(body) < 12 {
		return nil, bad
	}
	n := int(binary.LittleEndian.Uint32(body[4:])) / 8
	e := int(binary.LittleEndian.Uint32(body[8:]))
	body = body[12:]
	if n <= 0 || n%2 != 0 || len(body) < n*4+n/2 {
		return nil, bad
	}
	next := func(size int) *big.Int {
		p := bytes.Clone(body[:size])
		body = body[size:]
		slices.Reverse(p)
		return new(big.Int).SetBytes(p)
	}
	k := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: next(n), E: e}}
	p, q := next(n/2), next(n/2)
	next(n / 2)
	next(n / 2)
	next(n / 2)
	k.D = next(n)
	k.Primes = []*big.Int{p, q}
	if err := k.Validate(); err != nil {
		return nil, bad
	}
	k.Precompute()
	return x509.MarshalPKCS8PrivateKey(k)
}
