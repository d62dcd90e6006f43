// A certified provider of OpenID Connect with people, groups and clients of our tests, on loopback.
// Usage: node provider.mjs JSON, with {"port", "clients", "people"}; says "ready" once it listens.
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const { port, clients, people } = JSON.parse(process.argv[2]);
const key = (type, options, more) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }), use: "sig", ...more,
});

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients,
  jwks: { keys: [
    key("rsa", { modulusLength: 2048 }, { kid: "rsa" }),
    key("ec", { namedCurve: "P-256" }, { kid: "ec" }),
  ] },
  cookies: { keys: ["of our tests alone"] },
  pkce: { required: () => true },
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  enabledJWA: { idTokenSigningAlgValues: ["RS256", "PS256", "ES256", "HS256"] },
  // Whoever types a login at its form is that person; the password may be anything.
  findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, ...people[sub] }) }),
});
provider.listen(port, "127.0.0.1", () => console.log("ready"));
