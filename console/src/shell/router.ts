import { useCallback, useMemo, useSyncExternalStore } from 'preact/compat';
import type { BaseLocationHook } from 'wouter-preact';
import { useSearch } from 'wouter-preact';

/**
 * Addresses live behind the `#`, so that the page's own address never changes: everything it loads stays relative and works
 * behind any prefix, and no id of a tenant reaches the log of a proxy.
 */
const subscribe = (listener: () => void) => {
  addEventListener('hashchange', listener);
  return () => {
    removeEventListener('hashchange', listener);
  };
};
const parts = () => {
  const [path = '', search = ''] = location.hash.slice(1).split('?', 2);
  return { path: path === '' ? '/' : path, search };
};

export function navigate(to: string, { replace = false } = {}): void {
  if (replace) location.replace(`#${to}`);
  else location.hash = to;
}

export const useHashPath: BaseLocationHook = () => [useSyncExternalStore(subscribe, () => parts().path), navigate];
useHashPath.searchHook = () => useSyncExternalStore(subscribe, () => parts().search);
useHashPath.hrefs = (href) => `#${href}`;

/** Puts parameters behind a path; those without a value are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '');
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`;
}

/** The parameters behind the path, and a function that changes some of them. A filter's change is no step back. */
export function useParams(): [
  Readonly<Record<string, string>>,
  (changes: Readonly<Record<string, string | undefined>>, options?: { replace?: boolean }) => void,
] {
  const search = useSearch();
  const params = useMemo(() => Object.fromEntries(new URLSearchParams(search)), [search]);
  const change = useCallback(
    (changes: Readonly<Record<string, string | undefined>>, options?: { replace?: boolean }) => {
      const { path, search: before } = parts();
      navigate(withQuery(path, { ...Object.fromEntries(new URLSearchParams(before)), ...changes }), options);
    },
    [],
  );
  return [params, change];
}
