import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { lazy } from 'preact-iso'
import { hasRole, own, type Role } from '../api/session.ts'

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Reflex`
  }, [title])
}

type PageProps = {
  title: string
  /** Above the heading: where the page is. */
  path?: ComponentChildren
  /** Beside the heading: what can be done. */
  actions?: ComponentChildren
  /** The role without which the page can show nothing. */
  needs?: Role
  children: ComponentChildren
}

export function Page({ title, path, actions, needs, children }: PageProps) {
  useTitle(title)
  return (
    <div class="page">
      <div class="heading">
        <div>
          {path && <p class="path">{path}</p>}
          <h1>{title}</h1>
        </div>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {needs && !hasRole(needs) ? <NeedsRole role={needs} /> : children}
    </div>
  )
}

/** Instead of what a key may not see. Nothing is left out without a word. */
export function NeedsRole({ role, what = 'This page' }: { role: Role; what?: string }) {
  const key = own.value
  return (
    <p class="needs-role" role="note">
      {what} needs the role <b>{role}</b>. The key {key?.name} has: {key?.roles.join(', ')}.
    </p>
  )
}

type SectionProps = { title: string; actions?: ComponentChildren; children: ComponentChildren }

export function Section({ title, actions, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <div class="heading">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** A page whose file is loaded when it is first shown. A deployment may have removed the file. */
export const later = <Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name): ComponentType =>
  lazy(() =>
    load().then(
      (file): ComponentType => file[name],
      () => Unloaded,
    ),
  )

function Unloaded() {
  return (
    <div class="empty">
      <p>This could not be loaded: the server is away, or a new version was deployed.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </div>
  )
}
