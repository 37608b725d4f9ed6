// Warns where a key would travel in the clear.
document.getElementById('in-the-clear').hidden = window.isSecureContext;
