package agentfile

import "strings"

// keyVariables are where keys belong.
const keyVariables = "OPENAI_API_KEY or ANTHROPIC_API_KEY"

// secretName tells whether a field of that name holds a secret, in any spelling: apiKey, api_key, x-api-key,
// authToken. Counts of tokens (maxTokens) and cache keys are none.
func secretName(name string) bool {
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
	switch plain {
	case "token", "auth", "key", "authorization", "credential", "credentials", "bearer":
		return true
	}
	for _, end := range []string{"apikey", "accesskey", "secretkey", "privatekey", "secret", "password", "passwd", "accesstoken", "authtoken", "bearertoken", "apitoken", "sessiontoken"} {
		if strings.HasSuffix(plain, end) {
			return true
		}
	}
	return false
}
