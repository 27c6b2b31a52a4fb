import { render } from 'preact'
import { App } from './app.tsx'
import { applyTheme } from './layout/theme.ts'
// One stylesheet per concept; a page's own is imported by the page.
import './ui/css/base.css'
import './ui/css/layout.css'
import './ui/css/controls.css'
import './ui/css/table.css'
import './ui/css/parts.css'

applyTheme()
render(<App />, document.body)
