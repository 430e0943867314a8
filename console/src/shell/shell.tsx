import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';

import { Icon, Logo } from '../ui/icon.tsx';
import type { IconName } from '../ui/icon.tsx';
import { Toasts } from '../ui/toast.tsx';
import { ThemeToggle } from './theme.tsx';
import { Button } from '../ui/parts.tsx';

export interface NavItem {
  /** A path of the console, or the address of another page of the service. */
  to: string;
  label: string;
  icon: IconName;
  isOutside?: boolean;
}
export interface NavGroup {
  title?: string;
  items: readonly NavItem[];
}

const Brand = ({ face }: { face: string | undefined }) => (
  <Link href="/" class="brand">
    <Logo /> Parley {face !== undefined && <small>{face}</small>}
  </Link>
);

function NavLink({ item, path }: { item: NavItem; path: string }) {
  const inside = (
    <>
      <Icon name={item.icon} />
      {item.label}
    </>
  );
  if (item.isOutside === true)
    return (
      <a class="nav-link" href={item.to}>
        {inside}
      </a>
    );
  const isHere = item.to === '/' ? path === '/' : path === item.to || path.startsWith(`${item.to}/`);
  return (
    <Link class="nav-link" href={item.to} aria-current={isHere ? 'page' : undefined}>
      {inside}
    </Link>
  );
}

/** The frame of both faces: navigation, the page, and who is signed in. */
export function Shell({
  face,
  groups,
  account,
  onSignOut,
  children,
}: {
  face?: string;
  groups: readonly NavGroup[];
  account: ComponentChildren;
  onSignOut: () => void;
  children: ComponentChildren;
}) {
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // A new page begins at its top, and a screen reader reads on from there.
  useEffect(() => {
    setOpen(false);
    if (!isFirst.current) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [path]);
  useEffect(() => {
    const here = groups.flatMap(({ items }) => items).findLast(({ to }) => path === to || path.startsWith(`${to}/`));
    document.title = `${here?.label ?? 'Console'} · Parley`;
  }, [path, groups]);
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <header class="top">
        <Brand face={face} />
        <Button
          kind="quiet"
          aria-expanded={isOpen}
          aria-controls="side"
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          <Icon name="menu" />
          Menu
        </Button>
      </header>
      {isOpen && (
        <button
          type="button"
          class="scrim"
          aria-label="Close the menu"
          onClick={() => {
            setOpen(false);
          }}
        />
      )}
      <div class="side" id="side" data-open={isOpen}>
        <Brand face={face} />
        <nav aria-label="Console">
          {groups.map(({ title, items }, at) => (
            <div key={title ?? at}>
              {title !== undefined && <h2>{title}</h2>}
              <ul>
                {items.map((item) => (
                  <li key={item.to}>
                    <NavLink item={item} path={path} />
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div class="side-foot">
          {account}
          <div class="row between">
            <Button kind="quiet" onClick={onSignOut}>
              <Icon name="exit" />
              Sign out
            </Button>
            <ThemeToggle />
          </div>
        </div>
      </div>
      <main class="page" id="main" tabIndex={-1} ref={main}>
        {children}
      </main>
      <Toasts />
    </div>
  );
}
