import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const STORED = 'reflex.theme'
const known = (value: string | null): Theme => (value === 'light' || value === 'dark' ? value : 'system')

export const theme = signal<Theme>(known(localStorage.getItem(STORED)))

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.value
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen
  if (chosen === 'system') localStorage.removeItem(STORED)
  else localStorage.setItem(STORED, chosen)
  applyTheme()
}
