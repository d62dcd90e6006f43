"""What a page must be like for whoever reads it, asked of the page itself, in a real browser.

Each script returns what is wrong, so that a failing test names the places.
"""

from __future__ import annotations

# Contrast by WCAG 2 of every visible piece of text against the first opaque colour behind it.
CONTRAST = """() => {
  const canvas = document.createElement('canvas'); canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const rgba = colour => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = node => { for (; node; node = node.parentElement) {
      const c = rgba(getComputedStyle(node).backgroundColor);
      if (c[3] > 250) return c;
    } return [255, 255, 255, 255]; };
  const poor = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, style = getComputedStyle(node);
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest(':disabled')) continue;
    const drawn = node instanceof SVGElement;
    if (drawn && node.tagName !== 'text') continue;
    const a = light(rgba(drawn ? style.fill : style.color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen += 1;
    if (ratio < 4.5) poor.push([walker.currentNode.data.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return {seen, poor};
}"""

UNREACHABLE = """() => [...document.querySelectorAll('*')].filter(e =>
    e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
    && e.tabIndex < 0 && e.tagName !== 'NAV' && e.querySelector('[tabindex]') === null && !e.closest('[tabindex]')
  ).map(e => e.outerHTML.slice(0, 80))"""

# What a screen reader, a keyboard and a browser's outline need; each fault as a short text.
FAULTS = """() => {
  const faults = [], say = (what, e) => faults.push(`${what}: ${e.outerHTML.slice(0, 120)}`);
  const all = query => [...document.querySelectorAll(query)];
  const shown = e => e.checkVisibility();
  const text = id => document.getElementById(id)?.textContent ?? '';
  const name = e => (e.getAttribute('aria-label')
    || (e.getAttribute('aria-labelledby') ?? '').split(' ').map(text).join(' ')
    || [...(e.labels ?? [])].map(l => l.textContent).join(' ') || e.getAttribute('alt') || e.textContent
    || e.getAttribute('title') || '').trim();
  if (document.documentElement.lang !== 'en') faults.push('the page has no language');
  if (!document.title.trim()) faults.push('the page has no title');
  for (const query of ['main', 'h1']) {
    if (all(query).filter(shown).length !== 1) faults.push(`${all(query).filter(shown).length} times ${query}`);
  }
  let level = 0;
  for (const h of all('h1, h2, h3, h4, h5, h6').filter(shown)) {
    const now = Number(h.tagName[1]);
    if (!name(h)) say('empty heading', h);
    if (h.closest('main') && level && now > level + 1) say(`heading jumps from ${level} to ${now}`, h);
    if (h.closest('main')) level = now;
  }
  const ids = all('[id]').map(e => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`id twice: ${id}`);
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'for']) {
    for (const e of all(`[${attribute}]`)) {
      const ids = e.getAttribute(attribute).split(/\\s+/);
      if (!ids.every(id => document.getElementById(id))) say(`${attribute} of nothing`, e);
    }
  }
  const named = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [role=region], nav, progress';
  for (const e of all(`${named}, svg[role=img]`)) {
    if (shown(e) && !name(e)) say('no name', e);
  }
  for (const e of all('a[href^="#"]')) {
    const id = decodeURIComponent(e.getAttribute('href').slice(1));
    if (id && !document.getElementById(id)) say('leads nowhere', e);
  }
  for (const e of all('img')) if (!e.hasAttribute('alt')) say('no alt', e);
  for (const e of all('table')) if (!e.querySelector('th')) say('no header', e);
  for (const e of all('[tabindex]')) if (e.tabIndex > 0) say('order forced', e);
  const pad = (e, side) => parseFloat(getComputedStyle(e.closest('.panel'))['padding' + side]);
  for (const e of all('.panel *').filter(shown)) {
    const inner = e.getBoundingClientRect(), outer = e.closest('.panel').getBoundingClientRect();
    let scrolled = e;
    while (!scrolled.matches('.panel') && getComputedStyle(scrolled).overflowX === 'visible') {
      scrolled = scrolled.parentElement;
    }
    if (scrolled.matches('.panel') && getComputedStyle(e).position === 'static'
        && (inner.right > outer.right - pad(e, 'Right') + 1 || inner.left < outer.left + pad(e, 'Left') - 1)) {
      say('sticks out of its panel', e);
    }
  }
  for (const e of all('.scroll:has(> .history)')) {
    if (e.scrollWidth > e.clientWidth + 1) say('what came of an attempt is cut off', e);
  }
  for (const e of all('.chip').filter(shown)) {
    const box = e.closest('.scroll, .panel');
    if (box && e.getBoundingClientRect().width > box.clientWidth + 1) say('wider than its box', e);
  }
  const navs = all('nav').filter(shown).map(name);
  if (new Set(navs).size !== navs.length) faults.push(`navs alike: ${navs}`);
  for (const e of all('button, .button, input[type=checkbox] + span, select').filter(shown)) {
    const box = e.getBoundingClientRect();
    if (box.height < 24 || box.width < 24) say(`small target ${Math.round(box.width)}x${Math.round(box.height)}`, e);
  }
  return faults;
}"""

# Where the focus is, and whether one sees it: outline or border differ from the same element without focus.
FOCUS = """() => {
  const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
  return {name: (e.getAttribute('aria-label') || e.textContent || e.name || '').trim().slice(0, 40), tag: e.tagName,
    seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, width: box.width, height: box.height};
}"""
