// A certified OpenID Connect provider with its own pages, as a process of its own.
//
// What it is told comes as JSON on its input: where it is, its certificate, its clients, and the claims
// of everybody it knows. It says when it is ready.

import { createServer } from "node:https";
import { generateKeyPairSync } from "node:crypto";
import { text } from "node:stream/consumers";
import Provider from "oidc-provider";

const told = JSON.parse(await text(process.stdin));
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const provider = new Provider(told.issuer, {
  clients: told.clients,
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "first", use: "sig", alg: "RS256" }] },
  cookies: { keys: ["of-a-test"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups", "department"] },
  conformIdTokenClaims: false, // claims of scopes stand in ID tokens, as with Dex or Keycloak
  features: { revocation: { enabled: true } },
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed("refresh_token"),
  findAccount: async (_context, id) =>
    told.accounts[id] && { accountId: id, claims: async () => ({ sub: id, ...told.accounts[id] }) },
  ttl: { IdToken: 3600, AccessToken: 3600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 3600 },
});
createServer({ key: told.key, cert: told.certificate }, provider.callback()).listen(told.port, "127.0.0.1", () =>
  console.log("ready"),
);
