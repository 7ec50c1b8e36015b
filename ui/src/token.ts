// The token of the server, which stays in this tab.
const TOKEN = "mainstem-token";

export const token = (): string | null => sessionStorage.getItem(TOKEN);

export const setToken = (value: string): void => sessionStorage.setItem(TOKEN, value);

/**
 * Takes a token out of the address, where `mainstem serve` puts it, so that no history retains it.
 */
export function takeToken(): void {
  const found = /^#token=([^&]+)$/.exec(location.hash);
  if (!found) return;
  setToken(decodeURIComponent(found[1]!));
  history.replaceState(null, "", location.pathname);
}
