/** The sign-in form: plain HTML, no script, nothing from elsewhere. */
export const SIGN_IN_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export function renderSignIn({ refused }: { refused: boolean }): string {
  const notice = refused ? '<p role="alert">This is not the administrator token.</p>' : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parley administration</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
input, button { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .25rem 0 1rem }
[role=alert] { color: #b00020 }
</style>
</head>
<body>
<h1>Parley administration</h1>
${notice}<form method="post" action="/admin/sign-in">
<label for="token">Administrator token (ADMIN_TOKEN)</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button>
</form>
</body>
</html>
`;
}
